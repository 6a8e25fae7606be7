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

// running is one stage that runs, or something else that is counted.
type running struct {
	name, title string
	now         string // what it does right now
	done, total int64  // as in report.Event
	started     time.Time
	expected    time.Duration // 0 where not known
	loose       bool          // no stage: a download before the first one, say; it ends when all is counted
}

// over says whether something loose has ended.
func (r running) over() bool { return r.loose && r.done >= r.total }

// apply brings the state up to date with e. It returns the stage that e is
// about: as it was, if it has just ended.
func (s *state) apply(e report.Event) (running, bool) {
	i := slices.IndexFunc(s.running, func(r running) bool { return r.name == e.Stage })
	switch e.Kind {
	case report.StageStarted:
		s.dropLoose()
		i = slices.IndexFunc(s.running, func(r running) bool { return r.name == e.Stage })
		r := running{name: e.Stage, title: oneLine(e.Message), started: e.Time, expected: e.Expected}
		if i >= 0 {
			s.running[i] = r
		} else {
			s.running = append(s.running, r)
		}
		return r, true
	case report.StageProgress:
		if i < 0 && e.Total <= 0 {
			return running{}, false
		}
		if i < 0 {
			i = len(s.running)
			s.running = append(s.running, running{name: e.Stage, started: e.Time, loose: true})
		}
		s.running[i].now, s.running[i].done, s.running[i].total = oneLine(e.Message), e.Done, e.Total
		r := s.running[i]
		if r.over() {
			s.running = slices.Delete(s.running, i, i+1)
		}
		return r, true
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

// dropLoose forgets what is no stage: where a stage begins, all before it has
// ended, counted or not.
func (s *state) dropLoose() {
	s.running = slices.DeleteFunc(s.running, func(r running) bool { return r.loose })
}
