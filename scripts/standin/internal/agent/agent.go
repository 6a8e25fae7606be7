// Package agent is the installed stand-in at work: it runs what the answer file
// left to be run, serves WinRM, and answers command lines as cmd.exe would,
// with PowerShell where the medium has it and by itself where it has not.
//
// Everything it does to the machine goes through machine.Machine, so that it is
// tested without one. It must not import install.
package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/fallback"
	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/programs"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
	"github.com/wbox-dev/wbox/scripts/standin/winrmd"
)

// payloadLabel is the label of the payload partition.
const payloadLabel = "WBOX"

// sealDelay is how long sealing waits for the caller to read its result and go.
const sealDelay = 3 * time.Second

// Agent is the played Windows of one boot.
type Agent struct {
	State   *state.Store
	Machine machine.Machine
	C       string                                    // the folder that plays C:
	Seed    func(ctx context.Context) (string, error) // finds and mounts the seed volume
	Logf    func(format string, args ...any)          // what the console shows
	Host    Host                                      // PowerShell, nil where the medium has none
	Listen  Listen                                    // how ports are opened
	// Ctr runs Debian's ctr; nil where the medium has no containerd.
	Ctr     func(ctx context.Context, args []string) programs.Result
	Outside func(ctx context.Context) error // whether the network leads out; nil: there is none

	mu        sync.Mutex                    // guards what follows
	life      context.Context               // of this boot; listeners end with it
	listeners map[string]context.CancelFunc // by transport and certificate
	server    *winrmd.Server

	faults faults
}

// Host is PowerShell; *pshost.Host is one.
type Host interface {
	// Run runs a request and returns its exit code.
	Run(ctx context.Context, r pshost.Request, stdout, stderr io.Writer) (int, error)
}

// Boot does what happens at every boot, then what is to be done once, and
// returns once the machine can be talked to. The listeners live until ctx ends.
func (a *Agent) Boot(ctx context.Context) error {
	a.mu.Lock()
	a.life = ctx
	a.mu.Unlock()
	err := a.State.Change(func(s *state.State) error {
		for name := range s.Features {
			s.Features[name] = "installed"
		}
		return nil
	})
	if err != nil {
		return err
	}
	if a.Host != nil {
		if exit := a.inPowerShell(ctx, pshost.Request{Kind: "boot", User: "SYSTEM"}, a.logged("boot tasks")); exit != 0 {
			a.Logf("boot tasks: exit code %d", exit)
		}
	} else if a.State.Get().CopyAtBoot {
		a.Logf("copying the payload to C:\\k")
		if err := fallback.CopyPayload(ctx, a.fallbackEnv(""), payloadLabel); err != nil {
			a.Logf("copying the payload: %v", err)
		}
	}
	if err := a.applyListeners(); err != nil {
		return err
	}
	if err := a.bootFault(); err != nil {
		return err
	}
	return a.runOnce(ctx)
}

// runOnce runs the answer file's commands, once: a command that is interrupted
// by a reset is not run again. As in Windows their exit codes stop nothing.
func (a *Agent) runOnce(ctx context.Context) error {
	for {
		s := a.State.Get()
		if len(s.Commands) == 0 {
			return nil
		}
		command := s.Commands[0]
		user := s.AutoLogon
		if command.Pass == "specialize" {
			user = "SYSTEM"
		}
		a.Logf("%s: running as %s: %.200s", command.Pass, user, command.Line)
		exit := a.Run(ctx, user, command.Line, strings.NewReader(""), a.logged(command.Pass).Stdout, a.logged(command.Pass).Stderr)
		if exit == 0 {
			a.Logf("%s: done", command.Pass)
		} else {
			a.Logf("setup failed: %s: the command ended with exit code %d", command.Pass, exit)
		}
		err := a.State.Change(func(s *state.State) error {
			s.Commands = s.Commands[1:]
			if len(s.Commands) == 0 {
				s.AutoLogon = ""
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// programEnv is what programs see, run by user.
func (a *Agent) programEnv(user string) *programs.Env {
	return &programs.Env{State: a.State, Machine: stubborn{a.Machine, a}, C: a.C, User: user}
}

func (a *Agent) fallbackEnv(seed string) *fallback.Env {
	return &fallback.Env{State: a.State, Machine: a.Machine, C: a.C, Seed: seed, Seal: a.seal, WinRM: a.setWinRM, Outside: a.Outside}
}

// seal removes, once the caller is gone, what belongs to the bake, and turns the
// machine off.
func (a *Agent) seal(account string) {
	time.AfterFunc(sealDelay, func() {
		a.Logf("sealing")
		err := a.State.Change(func(s *state.State) error {
			var kept []state.Account
			for _, acc := range s.Accounts {
				if !strings.EqualFold(acc.Name, account) {
					kept = append(kept, acc)
				}
			}
			s.Accounts = kept
			if admin := s.Account("Administrator"); admin != nil {
				admin.Password, admin.Disabled = "", true
			}
			s.WinRM.HTTPS, s.WinRM.Basic, s.WinRM.Certificate = false, false, ""
			return nil
		})
		if err != nil {
			a.Logf("sealing: %v", err)
		}
		for _, path := range []string{filepath.Join(a.C, "Windows", "Panther", "unattend.xml"), a.certificates()} {
			if err := os.RemoveAll(path); err != nil {
				a.Logf("sealing: %v", err)
			}
		}
		a.Machine.Restart(0, true)
	})
}

// logged returns streams whose lines go to the console.
func (a *Agent) logged(what string) Streams {
	w := &lineLogger{prefix: what, logf: a.Logf}
	return Streams{Stdin: strings.NewReader(""), Stdout: w, Stderr: w}
}

// lineLogger logs what is written to it.
type lineLogger struct {
	prefix string
	logf   func(string, ...any)
}

func (l *lineLogger) Write(b []byte) (int, error) {
	if text := strings.TrimSpace(string(b)); text != "" {
		l.logf("%s: %s", l.prefix, text)
	}
	return len(b), nil
}

// winPath maps a path of the played Windows to the real one.
func (a *Agent) winPath(path string) (string, error) {
	rest := strings.ReplaceAll(path, `\`, "/")
	if len(rest) < 3 || !strings.EqualFold(rest[:3], "c:/") || !filepath.IsLocal("x/"+rest[3:]) {
		return "", fmt.Errorf("there is no path %s", path)
	}
	return filepath.Join(a.C, filepath.FromSlash(rest[3:])), nil
}
