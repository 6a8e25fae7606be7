// Package fallback answers for guest scripts on a medium without PowerShell: a
// small state machine in place of each, over the same state, reboots and
// partitions. Its results say "executed": "stand-in".
//
// It knows what the scripts stand for, not what they do. It must not import the
// agent.
package fallback

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// RebootRequired is the exit code of a script that wants a reboot.
const RebootRequired = 3010

// Env is what the answers work on.
type Env struct {
	State   *state.Store
	Machine machine.Machine
	C       string                                  // the folder that plays C:
	Seed    string                                  // the folder of the seed volume
	Seal    func(account string)                    // starts the sealing of 90-generalize in the background
	WinRM   func(state.WinRM, []byte, string) error // stores a PFX with its password, where given, and listens as told
	Outside func(ctx context.Context) error         // whether the network leads out; nil: there is none
}

// Result is a script's result line.
type Result struct {
	Script   string         `json:"script"`
	Mode     string         `json:"mode"`
	State    string         `json:"state"`
	Reboot   bool           `json:"reboot"`
	Message  string         `json:"message"`
	Facts    map[string]any `json:"facts"`
	Executed string         `json:"executed"`
}

// answer is one script: what is missing, how to bring it about, and what to
// tell about it.
type answer struct {
	test  func(ctx context.Context, env *Env, p params) (missing string, err error)
	set   func(ctx context.Context, env *Env, p params) (reboot bool, err error)
	facts func(env *Env) map[string]any // of a test; nil: none
}

// answers returns the scripts that are known.
func answers() map[string]answer {
	return map[string]answer{
		"00-test-ready":       {test: testReady},
		"10-enable-winrm":     {test: testWinRM, set: setWinRM},
		"12-prepare-system":   {test: testPrepared, set: setPrepared},
		"14-check-licence":    {test: testLicence, set: setLicence, facts: licenceFacts},
		"20-install-features": {test: testFeatures, set: setFeatures},
		"30-install-runtime":  marked("30-install-runtime"),
		"32-preload-images":   marked("32-preload-images"),
		"40-prepare-cni":      marked("40-prepare-cni"),
		"50-prepare-node":     {test: marked("50-prepare-node").test, set: setNode},
		"90-generalize":       {test: testSealed, set: setSealed},
		"99-prove-payload":    {test: testPayload},
	}
}

// Run answers for a script and returns the result line and the exit code.
func Run(ctx context.Context, env *Env, script, mode string) (string, int) {
	r := Result{Script: script, Mode: mode, Facts: map[string]any{}, Executed: "stand-in"}
	exit := 0
	reboot, missing, err := run(ctx, env, script, mode)
	switch {
	case err != nil:
		r.State, r.Message, exit = "failed", err.Error(), 1
	case reboot && mode == "set":
		r.State, r.Reboot, r.Message, exit = "absent", true, "waits for a reboot", RebootRequired
	case missing != "":
		r.State, r.Message, r.Reboot = "absent", missing, reboot
	default:
		r.State = "present"
	}
	if facts := answers()[script].facts; facts != nil && mode == "test" && err == nil {
		r.Facts = facts(env)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err.Error(), 1
	}
	return string(line), exit
}

func run(ctx context.Context, env *Env, script, mode string) (reboot bool, missing string, err error) {
	a, ok := answers()[script]
	if !ok {
		return false, "", fmt.Errorf("the stand-in does not know the script %s", script)
	}
	p, err := parameters(env.Seed, script)
	if err != nil {
		return false, "", err
	}
	switch {
	case mode == "test":
		missing, err = a.test(ctx, env, p)
	case mode == "set" && a.set != nil:
		reboot, err = a.set(ctx, env, p)
	default:
		err = fmt.Errorf("%s has no mode %s", script, mode)
	}
	return reboot, missing, err
}

// params are a script's parameters, as in parameters.json.
type params map[string]json.RawMessage

// parameters reads a script's parameters from the seed; a script that is not
// listed has none.
func parameters(seed, script string) (params, error) {
	data, err := os.ReadFile(filepath.Join(seed, "wbox", "parameters.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}
	var all map[string]params
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}
	return all[script], nil
}

// get decodes a parameter into v; one that is not there leaves v as it is.
func (p params) get(name string, v any) error {
	raw, ok := p[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("parameter %s: %w", name, err)
	}
	return nil
}

// marked is a script of which only is known whether it was set.
func marked(script string) answer {
	return answer{
		test: func(_ context.Context, env *Env, _ params) (string, error) {
			if !env.State.Get().Scripts[script] {
				return "was not set", nil
			}
			return "", nil
		},
		set: func(_ context.Context, env *Env, _ params) (bool, error) {
			return false, env.State.Change(mark(script))
		},
	}
}

func mark(script string) func(*state.State) error {
	return func(s *state.State) error {
		if s.Scripts == nil {
			s.Scripts = map[string]bool{}
		}
		s.Scripts[script] = true
		return nil
	}
}
