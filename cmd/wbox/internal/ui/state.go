package ui

import (
	"slices"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// state is what goes on: the stages that run, in the order of their start. It
// has no clock and prints nothing.
type state struct {
	running []running
}

// running is one stage that runs.
type running struct {
	name, title string
	now         string // what it does right now
	done, total int64  // as in report.Event
	started     time.Time
	expected    time.Duration // 0 where not known
}

// apply brings the state up to date with e. It returns the stage that e is
// about: as it was, if it has just ended.
func (s *state) apply(e report.Event) (running, bool) {
	i := slices.IndexFunc(s.running, func(r running) bool { return r.name == e.Stage })
	switch e.Kind {
	case report.StageStarted:
		r := running{name: e.Stage, title: oneLine(e.Message), started: e.Time, expected: e.Expected}
		if i >= 0 {
			s.running[i] = r
		} else {
			s.running = append(s.running, r)
		}
		return r, true
	case report.StageProgress:
		if i < 0 {
			return running{}, false
		}
		r := &s.running[i]
		r.now, r.done, r.total = oneLine(e.Message), e.Done, e.Total
		return *r, true
	case report.StageDone, report.StageFailed, report.StageStopped, report.StageHit:
		if i < 0 {
			return running{name: e.Stage}, false
		}
		r := s.running[i]
		s.running = slices.Delete(s.running, i, i+1)
		return r, true
	}
	return running{}, false
}
