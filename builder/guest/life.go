package guest

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// heard remembers when the guest itself said something last. It is safe for
// concurrent use; time.Now has a monotonic clock, so no set clock confuses it.
type heard struct {
	mu   sync.Mutex
	what string
	at   time.Time
}

func (h *heard) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.what, h.at = what, time.Now()
}

// through returns a writer that notes whatever passes to w.
func (h *heard) through(what string, w io.Writer) io.Writer { return &hearing{h, what, w} }

type hearing struct {
	h    *heard
	what string
	w    io.Writer
}

func (w *hearing) Write(p []byte) (int, error) {
	w.h.note(w.what)
	return w.w.Write(p)
}

// LastHeard says what the guest answered last, and when; what is empty where it
// has never answered.
func (s *Session) LastHeard() (what string, at time.Time) {
	s.heard.mu.Lock()
	defer s.heard.mu.Unlock()
	return s.heard.what, s.heard.at
}

// maxResets is how often a machine may be reset while one thing is waited for:
// Windows Setup and a cumulative update together need five at the most.
const maxResets = 10

// resetLoop returns a function that notices a guest that is reset again and
// again from now on.
func (s *Session) resetLoop() func() error {
	if s.o.Resets == nil {
		return func() error { return nil }
	}
	before := s.o.Resets()
	return func() error {
		if n := s.o.Resets() - before; n > maxResets {
			return fmt.Errorf("%w: %d times meanwhile (limit %d)", ErrResetLoop, n, maxResets)
		}
		return nil
	}
}

// because returns err, or, where bounded has ended without its parent ctx, why
// it has: what ended it is no cancellation by the caller, and must not look so.
func because(ctx, bounded context.Context, err error) error {
	if err == nil || ctx.Err() != nil || bounded.Err() == nil {
		return err
	}
	return context.Cause(bounded)
}
