// Package licence is the clock of a Windows evaluation: when it was installed,
// when Windows shuts itself down unless it is activated, and when the evaluation
// ends. It is a leaf: it reckons with times that it is given and must not import
// anything of ours.
package licence

import (
	"fmt"
	"time"
)

// What Microsoft's Evaluation Center says of Windows Server: an evaluation runs
// 180 days, and has to be activated over the Internet within the first 10, or
// it shuts itself down.
const (
	EvaluationDays = 180
	GraceDays      = 10
)

const day = 24 * time.Hour

// Guest is what a fresh Windows says of its licence.
type Guest struct {
	Edition    string    // EditionID, such as "ServerDatacenterEval"
	Evaluation bool      // the edition or the licence's channel is that of an evaluation
	Installed  time.Time // by the guest's clock
	Now        time.Time // the guest's clock, when it was asked
	Status     int       // LicenseStatus of SoftwareLicensingProduct: 1 = licensed, 2 = in its first grace period; -1 = there is no licence
	Remaining  int       // GracePeriodRemaining in minutes, 0 where Windows names none
	Ends       time.Time // EvaluationEndDate, zero where Windows names none
	Activation string    // what came of trying to activate it, or why that was not tried
}

// licensed is LicenseStatus of an activated Windows.
const licensed = 1

// Record is the licence of an installed Windows. Times are UTC, to the second.
type Record struct {
	Edition    string `json:"edition"`
	Evaluation bool   `json:"evaluation"` // false: there is no clock, and the rest but Installed is empty
	// Installed is when its installation began, by this host's clock: no clock
	// of Windows can have begun earlier.
	Installed      time.Time `json:"installed"`
	Activated      bool      `json:"activated"`               // when the layer was sealed; with a network Windows may activate itself later
	Activation     string    `json:"activation,omitempty"`    // what came of trying
	GraceEnds      time.Time `json:"graceEnds,omitzero"`      // where it is not activated
	EvaluationEnds time.Time `json:"evaluationEnds,omitzero"` // see New
	Guest          *Said     `json:"guest,omitempty"`
	// Doubt says how the guest's clock contradicts this host's, if it does.
	Doubt string `json:"doubt,omitempty"`
}

// Said is what Windows itself said, as it said it.
type Said struct {
	Installed time.Time `json:"installed"`
	Now       time.Time `json:"now"`
	Status    int       `json:"licenseStatus"`
	Remaining int       `json:"gracePeriodRemaining"` // minutes
	Ends      time.Time `json:"evaluationEndDate,omitzero"`
}

// New reckons the clock of a Windows whose installation began at started and
// which said g at seen, both by this host's clock. Where Windows names an end
// that is earlier than what Microsoft says in general, the earlier one counts.
// Whether the 180 days begin with the installation or with the activation is
// not confirmed: the installation is the earlier of the two.
func New(started, seen time.Time, g Guest) Record {
	utc := func(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
	r := Record{Edition: g.Edition, Evaluation: g.Evaluation, Installed: utc(started)}
	if !g.Evaluation {
		return r
	}
	r.Activated, r.Activation, r.Doubt = g.Status == licensed, g.Activation, doubt(started, seen, g)
	r.Guest = &Said{Installed: utc(g.Installed), Now: utc(g.Now), Status: g.Status, Remaining: g.Remaining, Ends: utc(g.Ends)}
	if g.Ends.IsZero() {
		r.Guest.Ends = time.Time{}
	}
	earlier := func(limit, said time.Time) time.Time {
		if said.After(started) && said.Before(limit) {
			return utc(said)
		}
		return utc(limit)
	}
	var said time.Time
	if g.Remaining > 0 && g.Remaining < 10*EvaluationDays*24*60 { // else it says nothing
		said = seen.Add(time.Duration(g.Remaining) * time.Minute)
	}
	r.EvaluationEnds = earlier(started.Add(EvaluationDays*day), g.Ends)
	if r.Activated {
		r.EvaluationEnds = earlier(r.EvaluationEnds, said)
		return r
	}
	r.GraceEnds = earlier(started.Add(GraceDays*day), said)
	return r
}

// tolerance is how far the clocks may differ. It is generous: the installation
// itself takes most of an hour.
const tolerance = time.Hour

// doubt compares the guest's clock with this host's.
func doubt(started, seen time.Time, g Guest) string {
	switch skew := g.Now.Sub(seen); {
	case skew > tolerance || skew < -tolerance:
		return fmt.Sprintf("the guest's clock said %s when this host's said %s", stamp(g.Now), stamp(seen))
	case g.Installed.Before(started.Add(-tolerance)) || g.Installed.After(seen.Add(tolerance)):
		return fmt.Sprintf("the guest says it was installed at %s, and its installation began at %s", stamp(g.Installed), stamp(started))
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Date is a day as people and plans write it, in UTC.
func Date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// String says on one line what the clock is.
func (r Record) String() string {
	if !r.Evaluation {
		return "volume or retail: no clock"
	}
	return "evaluation, " + r.Ends()
}

// Ends says how an evaluation's clock stands, "" where there is none.
func (r Record) Ends() string {
	switch {
	case !r.Evaluation:
		return ""
	case r.Activated:
		return "activated: evaluation ends " + Date(r.EvaluationEnds)
	}
	return fmt.Sprintf("not activated: grace ends %s, evaluation ends %s", Date(r.GraceEnds), Date(r.EvaluationEnds))
}
