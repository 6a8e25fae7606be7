package licence

import (
	"fmt"
	"time"
)

// What is still good enough to build on. A box inherits the clock of the Windows
// in it, so that one which is nearly over is of little use; a month is what a
// node for tests lasts. Of the 10 days without an activation a month can't be
// asked: there three days are, which is more than any bake takes, and a box
// made last thing on a Friday lives until Monday.
const (
	DefaultDays = 30
	MostDays    = 150
	graceMargin = 3
)

// TooOld says why a build should not start from this Windows at a time: it has
// less than days left, or, where it is not activated, less than three. "" means
// it may. One that was installed within the last day and is not over yet is
// never too old: another one would be no younger.
func (r Record) TooOld(now time.Time, days int) string {
	if !r.Evaluation {
		return ""
	}
	if !r.Activated {
		if why := r.over("activation grace", r.GraceEnds, now, min(days, graceMargin)); why != "" {
			return why
		}
	}
	return r.over("evaluation", r.EvaluationEnds, now, days)
}

func (r Record) over(what string, end, now time.Time, days int) string {
	fresh := now.Sub(r.Installed) < day
	switch {
	case !now.Before(end):
		return fmt.Sprintf("its %s ended %s", what, Date(end))
	case now.Add(time.Duration(days)*day).After(end) && !fresh:
		return fmt.Sprintf("its %s ends %s, in less than %s", what, Date(end), plural(days))
	}
	return ""
}

func plural(days int) string {
	if days == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", days)
}
