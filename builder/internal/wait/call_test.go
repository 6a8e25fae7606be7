package wait

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCall(t *testing.T) {
	own := errors.New("its own error")
	off := errors.New("the machine is off")
	sleep := func(d time.Duration, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(d):
				return err
			}
		}
	}
	counter := uint64(0)
	still := func(context.Context) (uint64, error) { return 7, nil }
	moving := func(context.Context) (uint64, error) { counter++; return counter, nil }
	for name, c := range map[string]struct {
		life   func(context.Context) (uint64, error)
		cancel bool
		f      func(context.Context) error
		want   error
		after  time.Duration
		texts  []string
	}{
		"ends well":                {still, false, sleep(3*time.Second, nil), nil, 3 * time.Second, nil},
		"just before the deadline": {moving, false, sleep(time.Minute-1, nil), nil, time.Minute - 1, nil},
		"fails by itself":          {still, false, sleep(3*time.Second, own), own, 3 * time.Second, nil},
		"too late":                 {moving, false, sleep(time.Hour, nil), ErrDeadline, time.Minute, []string{"waiting for the test", "limit 1m0s", "at work 0s ago"}},
		"no sign of life":          {still, false, sleep(time.Hour, nil), ErrStalled, 30 * time.Second, []string{"limit 30s without a sign of life", "at work 30s ago"}},
		"cancelled, with a cause":  {moving, true, sleep(time.Hour, nil), off, 5500 * time.Millisecond, nil},
		"a result at the deadline": {moving, false, func(ctx context.Context) error { <-ctx.Done(); return nil }, nil, time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel {
					time.AfterFunc(5500*time.Millisecond, func() { cancel(off) })
				}
				o := options()
				o.LivenessName, o.Liveness, o.Stall = "the machine", c.life, 30*time.Second
				began := time.Now()
				err := Call(ctx, o, c.f)
				if !errors.Is(err, c.want) || time.Since(began) != c.after {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(began), c.want, c.after)
				}
				for _, text := range c.texts {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q lacks %q", err, text)
					}
				}
			})
		})
	}
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan struct{})
		time.AfterFunc(7*time.Second, func() { close(c) })
		began := time.Now()
		if err := Closed(t.Context(), options(), c); err != nil || time.Since(began) != 7*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := Closed(t.Context(), options(), nil); !errors.Is(err, ErrDeadline) {
			t.Errorf("got %v", err)
		}
	})
}
