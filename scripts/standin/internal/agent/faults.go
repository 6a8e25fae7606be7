package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// faults are the ways in which this guest misbehaves when a test of the host
// asks it to: "wbox-standin.exe fault NAME [VALUE]". README.md lists them.
type faults struct {
	mu    sync.Mutex
	next  string    // what happens in place of the next guest script, or during it
	quiet time.Time // WinRM answers nothing until then
}

// scriptFaults happen to the next guest script but the test of readiness.
const scriptFaults = " garbage half hang drop reboot off "

// answered is when the answer to the request that arranges for a fault is out.
const answered = time.Second

// ownFault arranges for one fault.
func (a *Agent) ownFault(_ context.Context, args []string) (any, error) {
	if len(args) == 0 || len(args) > 2 {
		return nil, errUse(args)
	}
	value := 0
	if len(args) == 2 {
		var err error
		if value, err = strconv.Atoi(args[1]); err != nil {
			return nil, errUse(args)
		}
	}
	a.Logf("fault: %s", strings.Join(args, " "))
	switch name := args[0]; {
	case strings.Contains(scriptFaults, " "+name+" "):
		a.faults.mu.Lock()
		defer a.faults.mu.Unlock()
		a.faults.next = name
		return true, nil
	case name == "mute":
		time.AfterFunc(answered, func() {
			a.faults.mu.Lock()
			defer a.faults.mu.Unlock()
			a.faults.quiet = time.Now().Add(time.Duration(value) * time.Second)
		})
		return true, nil
	case name == "reboot-twice", name == "never-reboot":
		return true, a.State.Change(func(s *state.State) error { s.Fault = name; return nil })
	}
	return a.hardFault(args[0], value)
}

// hardFault is one of the machine's.
func (a *Agent) hardFault(name string, value int) (any, error) {
	m, ok := a.Machine.(machine.Faulty)
	if !ok {
		return nil, errors.New("this machine has no faults")
	}
	full := filepath.Join(a.C, state.Dir, "full")
	switch name {
	case "clock":
		return true, m.SetClock(time.Duration(value) * time.Second)
	case "sleep":
		time.AfterFunc(answered, func() { a.Logf("sleeping: %v", m.Sleep()) })
		return true, nil
	case "disk-full":
		return true, m.Fill(full)
	case "disk-free":
		return true, os.Remove(full)
	}
	return nil, fmt.Errorf("there is no fault %s", name)
}

// hold keeps a request waiting while the guest is mute.
func (a *Agent) hold(ctx context.Context) {
	a.faults.mu.Lock()
	wait := time.Until(a.faults.quiet)
	a.faults.mu.Unlock()
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// misbehave is asked before a request is carried out; it says whether that is
// all there is.
func (a *Agent) misbehave(ctx context.Context, req pshost.Request, s Streams) (exit int, instead bool) {
	if !strings.HasPrefix(req.Text, "# wbox: run ") || strings.HasPrefix(req.Text, "# wbox: run 00-") {
		return 0, false
	}
	a.faults.mu.Lock()
	fault := a.faults.next
	a.faults.next = ""
	a.faults.mu.Unlock()
	switch fault {
	case "garbage":
		fmt.Fprint(s.Stdout, "\x00\xff\xfeThe instruction at 0x0 referenced memory at 0x0.\r\n")
	case "half":
		fmt.Fprint(s.Stdout, `{"script":"40-prepare`)
	case "hang":
		<-ctx.Done()
	case "drop": // in the middle of the script, which goes on
		time.Sleep(300 * time.Millisecond)
		a.mu.Lock()
		server := a.server
		a.mu.Unlock()
		server.Cut()
		return 0, false
	case "reboot", "off":
		a.Machine.Restart(0, fault == "off")
		<-ctx.Done()
	default:
		return 0, false
	}
	return 0, true
}

// rebootFault carries out what was arranged for a restart, before it; false
// means that there is to be none.
func (a *Agent) rebootFault() bool {
	if a.State.Get().Fault != "never-reboot" {
		return true
	}
	a.Logf("fault: not restarting")
	if err := a.State.Change(func(s *state.State) error { s.Fault = ""; return nil }); err != nil {
		a.Logf("fault: %v", err)
	}
	return false
}

// again is when the second of two restarts follows: just when all seems over.
const again = 3 * time.Second

// bootFault restarts the machine once more, if that was arranged.
func (a *Agent) bootFault() error {
	if a.State.Get().Fault != "reboot-twice" {
		return nil
	}
	a.Logf("fault: restarting again")
	a.Machine.Restart(again, false)
	return a.State.Change(func(s *state.State) error { s.Fault = ""; return nil })
}

// stubborn is a machine that may not restart.
type stubborn struct {
	machine.Machine
	a *Agent
}

// Restart restarts unless a fault was arranged.
func (m stubborn) Restart(delay time.Duration, off bool) {
	if m.a.rebootFault() {
		m.Machine.Restart(delay, off)
	}
}
