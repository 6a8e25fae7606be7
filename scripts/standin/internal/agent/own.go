package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/licensing"
	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/programs"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// ownProgram is the stand-in's own program, through which the simulated Windows
// commands reach the real machine.
const ownProgram = "wbox-standin"

// own answers wbox-standin.exe. Every answer is one line of JSON; an error goes
// to standard error with exit code 1. README.md lists the words.
func (a *Agent) own(ctx context.Context, args []string) programs.Result {
	verbs := map[string]func(context.Context, []string) (any, error){
		"info": a.ownInfo, "partitions": a.ownPartitions, "mount": a.ownMount, "unmount": a.ownUnmount,
		"accounts": a.ownAccounts, "winrm": a.ownWinRM, "certificates": a.ownCertificates, "power": a.ownPower,
		"fault":   a.ownFault,
		"licence": a.ownLicence,
	}
	if len(args) > 0 && args[0] == "ctr" && a.Ctr != nil { // what a real program says is handed on as it is
		return a.Ctr(ctx, args[1:])
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return programs.Result{Exit: 1, Stderr: fmt.Sprintf("wbox-standin: unknown request %q\n", args)}
	}
	value, err := verbs[args[0]](ctx, args[1:])
	if err != nil {
		return programs.Result{Exit: 1, Stderr: err.Error() + "\n"}
	}
	line, err := json.Marshal(value)
	if err != nil {
		return programs.Result{Exit: 1, Stderr: err.Error() + "\n"}
	}
	return programs.Result{Stdout: string(line) + "\n"}
}

// errUse says that a request has the wrong words.
func errUse(args []string) error { return fmt.Errorf("wbox-standin: wrong use: %q", args) }

func (a *Agent) ownInfo(ctx context.Context, _ []string) (any, error) {
	boot, err := a.Machine.BootTime()
	if err != nil {
		return nil, err
	}
	seed, err := a.Seed(ctx)
	if err != nil {
		seed = ""
	}
	s := a.State.Get()
	return map[string]any{
		"release": s.Release, "build": s.Build, "revision": s.Revision, "image": s.Image, "edition": s.Edition,
		"installation": s.Installation, "installed": s.Installed, "computerName": s.ComputerName, "timeZone": s.TimeZone,
		"settings": s.Settings, "letters": s.Letters, "setupComplete": len(s.Commands) == 0, "autoLogon": s.AutoLogon,
		"bootTime": boot.UTC().Format(time.RFC3339), "seed": seed, "c": a.C,
	}, nil
}

// ownPartitions: without words the table; "attributes NUMBER VALUE" sets them.
func (a *Agent) ownPartitions(ctx context.Context, args []string) (any, error) {
	switch {
	case len(args) == 0:
		return a.Machine.Partitions(ctx)
	case len(args) == 3 && args[0] == "attributes":
		number, err := strconv.Atoi(args[1])
		if err != nil {
			return nil, errUse(args)
		}
		var attributes machine.Attributes
		if err := attributes.UnmarshalText([]byte(args[2])); err != nil {
			return nil, errUse(args)
		}
		return true, a.Machine.SetAttributes(ctx, number, attributes)
	}
	return nil, errUse(args)
}

// ownMount: "NUMBER PATH" mounts a partition below a folder of C:. A hidden
// partition has no volume, as in Windows.
func (a *Agent) ownMount(ctx context.Context, args []string) (any, error) {
	if len(args) != 2 {
		return nil, errUse(args)
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, errUse(args)
	}
	path, err := a.winPath(args[1])
	if err != nil {
		return nil, err
	}
	partitions, err := a.Machine.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		if p.Number == number && p.Attributes&machine.Hidden != 0 {
			return nil, fmt.Errorf("partition %d is hidden and has no volume", number)
		}
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return true, a.Machine.MountPartition(ctx, number, path)
}

func (a *Agent) ownUnmount(_ context.Context, args []string) (any, error) {
	if len(args) != 1 {
		return nil, errUse(args)
	}
	path, err := a.winPath(args[0])
	if err != nil {
		return nil, err
	}
	return true, a.Machine.Unmount(path)
}

// ownAccounts: without words the list; "set JSON" adds or replaces an account,
// "remove NAME" removes one.
func (a *Agent) ownAccounts(_ context.Context, args []string) (any, error) {
	switch {
	case len(args) == 0:
		return a.State.Get().Accounts, nil
	case len(args) == 2 && args[0] == "set":
		var account state.Account
		if err := json.Unmarshal([]byte(args[1]), &account); err != nil || account.Name == "" {
			return nil, errUse(args[:1])
		}
		return true, a.State.Change(func(s *state.State) error {
			if old := s.Account(account.Name); old != nil {
				*old = account
				return nil
			}
			s.Accounts = append(s.Accounts, account)
			return nil
		})
	case len(args) == 2 && args[0] == "remove":
		return true, a.State.Change(func(s *state.State) error {
			for i := range s.Accounts {
				if strings.EqualFold(s.Accounts[i].Name, args[1]) {
					s.Accounts = append(s.Accounts[:i], s.Accounts[i+1:]...)
					return nil
				}
			}
			return fmt.Errorf("there is no account %s", args[1])
		})
	}
	return nil, errUse(args)
}

// ownWinRM: without words how it listens; "set JSON" changes that at once.
func (a *Agent) ownWinRM(_ context.Context, args []string) (any, error) {
	switch {
	case len(args) == 0:
		return a.State.Get().WinRM, nil
	case len(args) == 2 && args[0] == "set":
		w := a.State.Get().WinRM
		if err := json.Unmarshal([]byte(args[1]), &w); err != nil {
			return nil, errUse(args)
		}
		return true, a.setWinRM(w, nil, "")
	}
	return nil, errUse(args)
}

// ownCertificates: without words the thumbprints; "import PATH PASSWORD" keeps
// a PFX file (a path of this Linux) and returns its thumbprint, "remove
// THUMBPRINT" removes one with its key.
func (a *Agent) ownCertificates(_ context.Context, args []string) (any, error) {
	switch {
	case len(args) == 0:
		entries, err := os.ReadDir(a.certificates())
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		thumbprints := []string{}
		for _, e := range entries {
			thumbprints = append(thumbprints, strings.TrimSuffix(e.Name(), ".pem"))
		}
		return thumbprints, nil
	case len(args) == 3 && args[0] == "import":
		pfx, err := os.ReadFile(args[1])
		if err != nil {
			return nil, err
		}
		return a.importPFX(pfx, args[2])
	case len(args) == 2 && args[0] == "remove":
		return true, os.Remove(a.certificate(args[1]))
	}
	return nil, errUse(args[:1])
}

// ownLicence: without words what the licensing service shows of Windows;
// "activate" activates it.
func (a *Agent) ownLicence(ctx context.Context, args []string) (any, error) {
	switch {
	case len(args) == 0:
		return licensing.Of(a.State.Get(), time.Now()), nil
	case len(args) == 1 && args[0] == "activate":
		return true, licensing.Activate(ctx, a.State, a.Outside)
	}
	return nil, errUse(args)
}

// ownPower: "reboot SECONDS", "off SECONDS" or "abort".
func (a *Agent) ownPower(_ context.Context, args []string) (any, error) {
	if len(args) == 1 && args[0] == "abort" {
		return a.Machine.AbortRestart(), nil
	}
	if len(args) != 2 || (args[0] != "reboot" && args[0] != "off") {
		return nil, errUse(args)
	}
	seconds, err := strconv.Atoi(args[1])
	if err != nil || seconds < 0 {
		return nil, errUse(args)
	}
	a.Machine.Restart(time.Duration(seconds)*time.Second, args[0] == "off")
	return true, nil
}
