package report

import (
	"sync"
	"time"
)

// Thin returns a Sink that hands on counted progress (Total is set) with an
// unchanged Message at most once per interval; the first and the last (Done
// has reached Total) always pass, and so does every other event. It is for one
// source of events: an 8 GiB disk that is counted in 32 KiB steps would fill a
// run's log with a quarter of a million lines.
func Thin(s Sink, interval time.Duration) Sink {
	return &thinned{to: s, interval: interval, now: time.Now}
}

type thinned struct {
	to       Sink
	interval time.Duration
	now      func() time.Time

	mu      sync.Mutex
	message string    // of the last counted progress that passed
	last    time.Time // when that was
}

// Emit hands e on or drops it.
func (t *thinned) Emit(e Event) {
	if e.Kind != StageProgress || e.Total <= 0 || t.due(e) {
		t.to.Emit(e)
	}
}

func (t *thinned) due(e Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if e.Message == t.message && e.Done < e.Total && now.Sub(t.last) < t.interval {
		return false
	}
	t.message, t.last = e.Message, now
	return true
}
