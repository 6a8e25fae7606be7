package bake

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/report"
)

// Keeper is called while a machine whose guest failed is still running, after
// everybody was told how to get in, and returns when the machine is not needed
// any more. off is closed if it ends by itself.
type Keeper func(off <-chan struct{})

// secretsFile is the file in the run folder with the passwords of a machine that
// is kept. It is there as long as the machine.
const secretsFile = "way-in.txt"

// End ends the machine. err is how the stage went so far: a machine whose guest
// failed is kept first, where Host.Keep is set, and then the error it returns is
// a *fault.Standing. What goes wrong at the end is joined to it.
func (r *Running) End(ctx context.Context, err error) error {
	if err != nil && r.host.Keep != nil && ctx.Err() == nil {
		err = r.keep(ctx, err)
	}
	return errors.Join(err, r.Close())
}

func (r *Running) keep(ctx context.Context, err error) error {
	if r.machine == nil {
		return err
	}
	if off(r.machine) {
		r.work.Sink.Emit(report.Event{Kind: report.Note, Message: "the machine is off: there is nothing to keep"})
		return err
	}
	k := r.kept(err)
	if failed := r.saveSecrets(ctx, k); failed != nil {
		return errors.Join(err, fmt.Errorf("keeping the machine: %w", failed))
	}
	defer os.Remove(k.Secrets)
	r.work.Sink.Emit(report.Event{Kind: report.MachineKept, Message: "the machine is kept running until wbox is ended", Kept: k})
	r.work.Progress("failed; the machine is kept until Ctrl-C")
	r.host.Keep(r.machine.Done())
	if off(r.machine) {
		r.work.Sink.Emit(report.Event{Kind: report.Note, Message: "the machine has been turned off"})
	}
	return &fault.Standing{Err: err}
}

// kept describes the way in.
func (r *Running) kept(err error) *report.Kept {
	k := &report.Kept{Name: r.boot.Name, Reason: err.Error(), PID: os.Getpid(), Account: r.boot.Access.User, RunDir: r.work.RunDir,
		Secrets: filepath.Join(r.work.RunDir, secretsFile), SerialLog: filepath.Join(r.work.RunDir, serialFile)}
	scheme, port := "http", portHTTP
	if r.boot.TLS {
		scheme, port, k.Certificate = "https", portHTTPS, hex.EncodeToString(r.boot.Access.Pin[:])
	}
	if to, err := r.machine.Endpoint(port); err == nil {
		k.WinRM = fmt.Sprintf("%s://%s/wsman", scheme, to)
	}
	if shot := filepath.Join(r.work.RunDir, screenFile); exists(shot) {
		k.Screenshot = shot
	}
	return k
}

// saveSecrets writes the passwords, for the owner alone, and asks for the console.
func (r *Running) saveSecrets(ctx context.Context, k *report.Kept) error {
	text := fmt.Sprintf("account   %s\npassword  %s\n", r.boot.Access.User, r.boot.Access.Password)
	if s, ok := r.machine.(hypervisor.ConsoleServer); ok {
		if c, err := s.Console(ctx); err == nil {
			k.Console = c.URL
			text += fmt.Sprintf("console   %s\npassword  %s\n", c.URL, c.Password)
		}
	}
	return atomicfile.Write(ctx, k.Secrets, []byte(text), 0o600)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
