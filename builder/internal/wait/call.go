package wait

import (
	"context"
	"time"
)

// Call runs f, which ends by itself, under the limits of o: f's context ends at
// the deadline, and once the liveness sign has not grown for o.Stall. The error
// is nil where f returned nil, f's own where f failed by itself, and else an
// *Error that says which limit it was. f returns soon after its context ends.
func Call(ctx context.Context, o Options, f func(context.Context) error) error {
	interval := o.Interval
	if interval <= 0 {
		interval = 5 * time.Second
	}
	began := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, o.Deadline, ErrDeadline)
	defer cancel()
	limited, stop := context.WithCancelCause(limited)
	defer stop(nil)
	pulse := newPulse(o, began)
	pulse.feel(limited)
	ended := make(chan error, 1)
	go func() { ended <- f(limited) }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil || limited.Err() == nil {
				return err
			}
			return pulse.fail(ctx, began, "", why(limited))
		case <-tick.C:
			if limited.Err() == nil && pulse.feel(limited) {
				stop(ErrStalled)
			}
		}
	}
}

// Closed waits until c is closed, under the limits of o.
func Closed(ctx context.Context, o Options, c <-chan struct{}) error {
	return Call(ctx, o, func(ctx context.Context) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}
