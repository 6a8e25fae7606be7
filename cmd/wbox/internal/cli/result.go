package cli

import (
	"fmt"
	"io"
	"sync"
)

// result is standard output. It remembers that something could not be written,
// since who prints help or a table doesn't ask: a result that got lost must not
// end with exit code 0.
type result struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (r *result) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if err != nil {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	return n, err
}

// lost returns why not all was written, or nil.
func (r *result) lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("writing the result: %w", r.err)
}
