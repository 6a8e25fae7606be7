package bake

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// signs remembers when a machine did anything last, as seen from outside. Its
// times have a monotonic clock: no set clock confuses them.
type signs struct {
	mu    sync.Mutex
	known bool
	value uint64
	grew  time.Time
}

// watch looks at the machine's activity until it is off. It must be running.
func (r *Running) watch() {
	interval := r.host.Poll
	if interval <= 0 {
		interval = 5 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := r.machine
	go func() {
		<-m.Done()
		cancel()
	}()
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			if v, err := m.Activity(ctx); err == nil {
				r.signs.feel(v)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

func (s *signs) feel(v uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known || v != s.value {
		s.known, s.value, s.grew = true, v, time.Now()
	}
}

// text says in a few words what the guest and, if wanted, its machine did last.
func (s *signs) text(r *Running, machine bool) string {
	ago := func(t time.Time) string { return time.Since(t).Round(100*time.Millisecond).String() + " ago" }
	parts := []string{"the guest has never answered"}
	if r.Session != nil {
		if what, at := r.Session.LastHeard(); what != "" {
			parts[0] = fmt.Sprintf("the guest answered %q %s", strings.TrimPrefix(what, "# wbox: "), ago(at))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.machine == nil:
		return "the machine was not started"
	case off(r.machine):
		parts = append(parts, "its machine is off")
	case s.known && machine:
		parts = append(parts, "its disk or console was last used "+ago(s.grew))
	}
	if n := r.machine.Resets(); n > 0 {
		parts = append(parts, fmt.Sprintf("resets so far: %d", n))
	}
	return strings.Join(parts, ", ")
}
