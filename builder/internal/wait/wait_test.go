package wait

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func options() Options {
	return Options{What: "the test", Deadline: time.Minute, Interval: time.Second}
}

func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, began := 0, time.Now()
		err := Until(t.Context(), options(), func(context.Context) (bool, string, error) {
			n++
			return n == 4, "not yet", nil
		})
		if err != nil || n != 4 || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %d checks and %v", err, n, time.Since(began))
		}
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counter uint64
		o := options()
		o.LivenessName = "the machine"
		o.Liveness = func(context.Context) (uint64, error) {
			if counter < 10 {
				counter++
			}
			return counter, nil
		}
		began := time.Now()
		err := Until(t.Context(), o, func(ctx context.Context) (bool, string, error) {
			if time.Since(began) > 50*time.Second {
				<-ctx.Done() // a check that hangs is ended too
				return false, "broken off", nil
			}
			return false, "connection refused", nil
		})
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, ErrDeadline) || time.Since(began) != time.Minute {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		for _, want := range []string{"the test", "1m0s", "last seen: connection refused", "the machine was last seen at work 52s ago"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
	})
}

func TestEndsEarly(t *testing.T) {
	broken := errors.New("broken for good")
	off := errors.New("the machine is off")
	for name, c := range map[string]struct {
		change func(*Options)
		cancel error
		check  Check
		want   error
		after  time.Duration
	}{
		"a check's error": {nil, nil, func(context.Context) (bool, string, error) { return false, "seen", broken }, broken, 0},
		"stalled": {func(o *Options) {
			o.Stall = 10 * time.Second
			o.Liveness = func(context.Context) (uint64, error) { return 7, nil }
		}, nil, func(context.Context) (bool, string, error) { return false, "", nil }, ErrStalled, 10 * time.Second},
		"no sign of life, stalled": {func(o *Options) {
			o.Stall = 10 * time.Second
			o.Liveness = func(context.Context) (uint64, error) { return 0, broken }
		}, nil, func(context.Context) (bool, string, error) { return false, "", nil }, ErrStalled, 10 * time.Second},
		"cancelled":            {nil, context.Canceled, func(context.Context) (bool, string, error) { return false, "", nil }, context.Canceled, 5500 * time.Millisecond},
		"cancelled, its cause": {nil, off, func(context.Context) (bool, string, error) { return false, "", nil }, off, 5500 * time.Millisecond},
		"cancelled, both":      {nil, off, func(context.Context) (bool, string, error) { return false, "", nil }, context.Canceled, 5500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel != nil {
					time.AfterFunc(5500*time.Millisecond, func() { cancel(c.cancel) })
				}
				o := options()
				if c.change != nil {
					c.change(&o)
				}
				began := time.Now()
				err := Until(ctx, o, c.check)
				if !errors.Is(err, c.want) || time.Since(began) != c.after {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(began), c.want, c.after)
				}
			})
		})
	}
}
