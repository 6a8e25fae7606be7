// Package wait polls for a condition under a deadline and, when it gives up,
// tells what it saw last. Every wait of the engine for something that runs by
// itself (a guest, a reboot, a service) goes through it.
//
// It is a leaf: it imports nothing of ours.
package wait

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Options says for what, how often and how long.
type Options struct {
	What     string        // completes "waiting for ...", such as "the guest to answer"
	Deadline time.Duration // from the call of Until on; must be positive
	Interval time.Duration // between the end of a check and the next; 5 s where zero

	// Liveness returns a number that grows while the other side does anything.
	// Optional. It is asked at the start and after every check that was not successful.
	Liveness func(context.Context) (uint64, error)
	// LivenessName names what Liveness measures, such as "the machine".
	LivenessName string
	// Stall ends the wait early once Liveness has not grown for so long; 0: never.
	Stall time.Duration
}

// ErrDeadline and ErrStalled say why a wait ended without its condition.
var (
	ErrDeadline = errors.New("the deadline has passed")
	ErrStalled  = errors.New("nothing moves any more")
)

// Error is a wait that ended without its condition.
type Error struct {
	What     string
	Elapsed  time.Duration
	Limit    time.Duration // the deadline, or how long a standstill may last
	Evidence string        // what the last check saw
	Liveness string        // what the liveness sign said, empty where there is none
	Err      error         // ErrDeadline, ErrStalled, a check's error or the context's
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "waiting for %s: %v after %v", e.What, e.Err, e.Elapsed.Round(time.Millisecond*100))
	switch {
	case errors.Is(e.Err, ErrDeadline):
		fmt.Fprintf(&b, " (limit %v)", e.Limit)
	case errors.Is(e.Err, ErrStalled):
		fmt.Fprintf(&b, " (limit %v without a sign of life)", e.Limit)
	}
	if e.Evidence != "" && e.Evidence != e.Err.Error() {
		b.WriteString("; last seen: " + e.Evidence)
	}
	if e.Liveness != "" {
		b.WriteString("; " + e.Liveness)
	}
	return b.String()
}

// Unwrap returns why the wait ended.
func (e *Error) Unwrap() error { return e.Err }

// Check looks once. done ends the wait well, an error ends it badly; else
// evidence says in a few words what was seen instead. Its context ends with the
// deadline.
type Check func(ctx context.Context) (done bool, evidence string, err error)

// Until calls check until it is done. Its error is nil or an *Error.
func Until(ctx context.Context, o Options, check Check) error {
	interval := o.Interval
	if interval <= 0 {
		interval = 5 * time.Second
	}
	began := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, o.Deadline, ErrDeadline)
	defer cancel()
	pulse := newPulse(o, began)
	last := ""
	fail := func(err error) error { return pulse.fail(ctx, began, last, err) }
	pulse.feel(limited) // the level to start from
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-limited.Done():
			return fail(why(limited))
		case <-timer.C:
		}
		done, evidence, err := check(limited)
		if done && err == nil {
			return nil
		}
		// A check that was broken off by the deadline saw less than the one before.
		if evidence != "" && (limited.Err() == nil || last == "") {
			last = evidence
		}
		if limited.Err() != nil {
			return fail(why(limited))
		}
		if err != nil {
			return fail(err)
		}
		if stalled := pulse.feel(limited); stalled {
			return fail(ErrStalled)
		}
		timer.Reset(interval)
	}
}

// why returns why ctx ended; errors.Is finds context.Canceled in it where that is so.
func why(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrDeadline) || errors.Is(cause, ErrStalled) || errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, ctx.Err())
}

// pulse remembers when a liveness sign grew last.
type pulse struct {
	o     Options
	known bool
	value uint64
	grew  time.Time
	err   error
}

func newPulse(o Options, now time.Time) *pulse {
	if o.LivenessName == "" {
		o.LivenessName = "the other side"
	}
	return &pulse{o: o, grew: now}
}

// feel asks for the sign and says whether the wait is to end for its absence.
func (p *pulse) feel(ctx context.Context) (stalled bool) {
	if p.o.Liveness == nil {
		return false
	}
	v, err := p.o.Liveness(ctx)
	p.err = err
	if err == nil && (!p.known || v != p.value) {
		p.known, p.value, p.grew = true, v, time.Now()
	}
	return p.o.Stall > 0 && time.Since(p.grew) >= p.o.Stall
}

// lastFeel bounds the last question for a sign of life: whoever does not answer
// it gives none.
const lastFeel = time.Second

// fail makes the error of a wait that began then and ends now. The sign of life
// is asked for once more, since the last check may have taken long; a caller
// whose own context ended has no use for it.
func (p *pulse) fail(ctx context.Context, began time.Time, evidence string, err error) *Error {
	limit := p.o.Deadline
	if errors.Is(err, ErrStalled) {
		limit = p.o.Stall
	} else if ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, lastFeel)
		defer cancel()
		p.feel(ask)
	}
	return &Error{What: p.o.What, Elapsed: time.Since(began), Limit: limit, Evidence: evidence, Liveness: p.String(), Err: err}
}

func (p *pulse) String() string {
	switch {
	case p.o.Liveness == nil:
		return ""
	case p.err != nil:
		return fmt.Sprintf("%s gives no sign of life: %v", p.o.LivenessName, p.err)
	case !p.known:
		return p.o.LivenessName + " was not asked for a sign of life"
	}
	return fmt.Sprintf("%s was last seen at work %v ago", p.o.LivenessName, time.Since(p.grew).Round(time.Millisecond*100))
}
