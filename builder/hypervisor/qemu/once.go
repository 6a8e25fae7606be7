package qemu

import "context"

// once remembers the first answer to a question, an error too. Only an asker
// whose context ends leaves the question open for the next one.
type once[T any] struct {
	turn chan struct{} // holds a token while nobody asks
	st   *onceState[T]
}

type onceState[T any] struct {
	known bool
	value T
	err   error
}

func newOnce[T any]() once[T] {
	o := once[T]{turn: make(chan struct{}, 1), st: new(onceState[T])}
	o.turn <- struct{}{}
	return o
}

// get returns the remembered answer, or asks for it.
func (o once[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-o.turn:
	}
	defer func() { o.turn <- struct{}{} }()
	if o.st.known {
		return o.st.value, o.st.err
	}
	v, err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		return none, err
	}
	o.st.known, o.st.value, o.st.err = true, v, err
	return v, err
}
