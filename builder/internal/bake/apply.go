package bake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wbox-dev/wbox/builder/guest"
)

// maxRounds bounds how often a layer is set and rebooted: a state that is not
// there after the second reboot will not come by itself.
const maxRounds = 3

// Applied is what became of one script.
type Applied struct {
	Script   string         `json:"script"`
	Changed  bool           `json:"changed"` // it had something to do
	Message  string         `json:"message,omitempty"`
	Facts    map[string]any `json:"facts,omitempty"`
	Executed string         `json:"executed"` // "powershell", or "stand-in" where none ran
}

// Apply brings each script's state about: test, set where it is absent, a
// reboot only where a script asked for one, and a last test that must pass.
func (r *Running) Apply(ctx context.Context, scripts []Script) ([]Applied, error) {
	applied := make([]Applied, len(scripts))
	for round := 1; ; round++ {
		reboot, pending, err := r.round(ctx, scripts, applied)
		if err != nil {
			return nil, r.explain(ctx, err)
		}
		if !reboot && pending == "" {
			return applied, nil
		}
		if !reboot || round == maxRounds {
			return nil, r.explain(ctx, fmt.Errorf("after %d rounds the state is not there: %s", round, pending))
		}
		if err := r.Reboot(ctx); err != nil {
			return nil, err
		}
	}
}

// round goes over all scripts once. pending says what is still absent.
func (r *Running) round(ctx context.Context, scripts []Script, applied []Applied) (reboot bool, pending string, err error) {
	var absent []string
	for i, s := range scripts {
		o, err := r.run(ctx, s.Name, guest.Test)
		if err != nil {
			return false, "", err
		}
		if o.State != guest.Present {
			if o, err = r.run(ctx, s.Name, guest.Set); err != nil {
				return false, "", err
			}
			applied[i].Changed = true
			if o.Reboot {
				reboot = true
				absent = append(absent, s.Name+" waits for a reboot")
				continue
			}
			if o, err = r.run(ctx, s.Name, guest.Test); err != nil {
				return false, "", err
			}
			if o.State != guest.Present {
				absent = append(absent, s.Name+": "+o.Message)
			}
		}
		applied[i].Script, applied[i].Message, applied[i].Facts, applied[i].Executed = s.Name, o.Message, o.Facts, executedBy(o)
	}
	return reboot, strings.Join(absent, "; "), nil
}

// Prove runs scripts in test mode only; each state must be there. A guest that
// reboots by itself meanwhile proves nothing.
func (r *Running) Prove(ctx context.Context, scripts []Script) ([]Applied, error) {
	var out []Applied
	var missing []error
	r.strict = true
	for _, s := range scripts {
		o, err := r.run(ctx, s.Name, guest.Test)
		if err != nil {
			return nil, r.explain(ctx, err)
		}
		if o.State != guest.Present {
			missing = append(missing, fmt.Errorf("%s: %s", s.Name, o.Message))
		}
		out = append(out, Applied{Script: s.Name, Message: o.Message, Facts: o.Facts, Executed: executedBy(o)})
	}
	if err := errors.Join(missing...); err != nil {
		return nil, r.explain(ctx, err)
	}
	return out, nil
}

// Set runs one script in set mode, once, whatever happens.
func (r *Running) Set(ctx context.Context, s Script) error {
	if _, err := r.runOnce(ctx, s.Name, guest.Set); err != nil {
		return r.explain(ctx, err)
	}
	return nil
}

// Reboot reboots the guest and proves it.
func (r *Running) Reboot(ctx context.Context) error {
	r.work.Progress("rebooting")
	if err := r.Session.Reboot(ctx, r.host.deadline(r.host.limits().Reboot)); err != nil {
		return r.explain(ctx, fmt.Errorf("rebooting: %w", err))
	}
	r.boots++
	return nil
}

func executedBy(o guest.Outcome) string {
	if o.Executed == "" {
		return "powershell"
	}
	return o.Executed
}
