package bake

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/wait"
)

// Names of what a machine leaves in the run folder.
const (
	serialFile     = "serial.log"
	transcriptFile = "transcript.txt"
	screenFile     = "screen.png"
	logsDir        = "guest-logs"
)

// explain makes a guest's failure say what the guest did last and where to look,
// and keeps a screenshot and the guest's logs, unless ctx ends meanwhile. A
// cancelled build explains itself; so does a problem of this host, such as a
// full disk, which is told in place of what it did to the guest.
func (r *Running) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var p *fault.Problem
	if errors.As(err, &p) {
		return err
	}
	class := fault.Guest
	if why := r.broken(); why != nil {
		if errors.As(why, &p) {
			return why
		}
		class = fault.Failed
		if !errors.Is(err, why) {
			err = fmt.Errorf("%w: %w", err, why)
		}
	}
	var waited *wait.Error
	told := errors.As(err, &waited) && waited.Liveness != ""
	signs := r.signs.text(r, !told)
	missing := r.gather(ctx, err)
	return &fault.Problem{Class: class, Err: fmt.Errorf("%w; last sign of life: %s", err, signs), Fix: r.look(missing)}
}

// broken returns why the machine ended, where it was not the guest that ended it.
func (r *Running) broken() error {
	if r.machine == nil || !off(r.machine) {
		return nil
	}
	return r.machine.Err()
}

// gather keeps a screenshot and the guest's logs, and returns why there is no
// screenshot, or "". A guest that does not answer is not asked again.
func (r *Running) gather(ctx context.Context, err error) (missing string) {
	if r.machine == nil {
		return ""
	}
	if off(r.machine) {
		return "no screenshot, the machine is off"
	}
	ctx, cancel := context.WithTimeout(ctx, r.host.limits().Gather)
	defer cancel()
	if s, ok := r.machine.(hypervisor.Screenshotter); ok {
		if err := s.Screenshot(ctx, filepath.Join(r.work.RunDir, screenFile)); err != nil {
			missing = "no screenshot: " + err.Error()
		}
	}
	if r.Session != nil && r.answers(err) {
		r.Session.CollectLogs(ctx, filepath.Join(r.work.RunDir, logsDir)) //nolint:errcheck // they are a help, the error is what counts
	}
	return missing
}

// answersFor is how long ago a guest that is not back after a reboot may have
// answered to be asked for its logs.
const answersFor = 30 * time.Second

// answers says whether a guest that failed with err may still be talked to.
func (r *Running) answers(err error) bool {
	for _, lost := range []error{guest.ErrLost, guest.ErrRefused, guest.ErrGone, guest.ErrResetLoop, wait.ErrStalled} {
		if errors.Is(err, lost) {
			return false
		}
	}
	if errors.Is(err, guest.ErrNeverRebooted) || errors.Is(err, guest.ErrNotReady) {
		_, at := r.Session.LastHeard()
		return time.Since(at) < answersFor
	}
	return true
}

// look says where to look: the files that are there.
func (r *Running) look(missing string) string {
	var have []string
	for _, name := range []string{transcriptFile, serialFile, screenFile, logsDir} {
		if exists(filepath.Join(r.work.RunDir, name)) {
			have = append(have, name)
		}
	}
	text := "look into " + r.work.RunDir
	if len(have) > 0 {
		text += " (" + strings.Join(have, ", ") + ")"
	}
	if missing != "" {
		text += "; " + missing
	}
	return text
}

func off(m hypervisor.Machine) bool {
	if m == nil {
		return true
	}
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}
