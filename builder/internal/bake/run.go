package bake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/report"
)

// maxLost is how often in a row a guest may be lost in the middle of a script
// and come back. Scripts are idempotent, so running one again does no harm; a
// guest that is lost every time is not to be trusted.
const maxLost = 3

// run runs a script and, where the guest is lost meanwhile (its connection
// breaks, it reboots by itself), waits for it and runs the script again.
func (r *Running) run(ctx context.Context, name string, mode guest.Mode) (guest.Outcome, error) {
	for {
		resets := r.machine.Resets()
		o, err := r.runOnce(ctx, name, mode)
		if err == nil {
			r.lost = 0
			return o, nil
		}
		if !errors.Is(err, guest.ErrLost) || ctx.Err() != nil || off(r.machine) {
			return o, err
		}
		if r.lost == maxLost {
			return o, fmt.Errorf("%w (it was lost %d times before)", err, r.lost)
		}
		r.lost++
		if again := r.comeBack(ctx, err, resets); again != nil {
			return o, again
		}
	}
}

// comeBack waits for a guest that was lost to be there again and quiet.
func (r *Running) comeBack(ctx context.Context, lost error, resets int) error {
	began, limit := time.Now(), r.host.deadline(r.host.limits().Reboot)
	r.work.Progress("waiting for the guest to come back")
	err := r.Session.WaitReachable(ctx, limit)
	if err == nil {
		err = r.Session.WaitReady(ctx, max(limit-time.Since(began), time.Second))
	}
	if err != nil {
		return fmt.Errorf("%w; it did not come back: %w", lost, err)
	}
	what := "the guest did not answer for a while and is back"
	if n := r.machine.Resets() - resets; n > 0 {
		if r.strict {
			return fmt.Errorf("%w; the guest has rebooted by itself", lost)
		}
		r.boots += n
		what = "the guest has rebooted by itself"
	}
	r.work.Sink.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("%s: %v; going on", what, lost)})
	return nil
}

func (r *Running) runOnce(ctx context.Context, name string, mode guest.Mode) (guest.Outcome, error) {
	verb := "testing"
	if mode == guest.Set {
		verb = "running"
	}
	r.work.Progress("%s %s", verb, name)
	return r.Session.RunScript(ctx, name, mode, r.host.deadline(r.host.limits().Script))
}
