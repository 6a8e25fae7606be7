package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Mode is what a guest script is asked for.
type Mode string

// The modes of a guest script.
const (
	Test Mode = "test" // say whether the state is there
	Set  Mode = "set"  // bring it about
)

// State is what a guest script found.
type State string

// The states a script can report.
const (
	Present State = "present" // the state is there
	Absent  State = "absent"  // it is not, or not yet
	Failed  State = "failed"
)

// exitReboot is the exit code of a script that wants a reboot and to be run again.
const exitReboot = 3010

// Outcome is what one run of a guest script came to.
type Outcome struct {
	Script   string
	Mode     Mode
	State    State
	Reboot   bool           // a reboot is needed before the state is there
	Message  string         // what is missing or went wrong, for people
	Facts    map[string]any // values for the manifest
	Executed string         // empty, or "stand-in" where a stand-in answered without running the script
	ExitCode int
}

// ScriptError is a script that ran to its end and failed.
type ScriptError struct {
	Outcome Outcome
}

func (e *ScriptError) Error() string {
	m := e.Outcome.Message
	if m == "" {
		m = "it gives no reason"
	}
	return fmt.Sprintf("%s (exit code %d)", m, e.Outcome.ExitCode)
}

// parseOutcome reads the result line, the last line of stdout, strictly: it must
// be about what was asked, and the exit code must agree with it. A script that
// failed is an outcome here, not an error.
func parseOutcome(stdout []byte, name string, mode Mode, exit int) (Outcome, error) {
	o := Outcome{ExitCode: exit}
	line := lastLine(stdout)
	if len(line) == 0 {
		return o, fmt.Errorf("no result line (exit code %d)", exit)
	}
	var r struct {
		Script   *string        `json:"script"`
		Mode     *Mode          `json:"mode"`
		State    *State         `json:"state"`
		Reboot   bool           `json:"reboot"`
		Message  string         `json:"message"`
		Facts    map[string]any `json:"facts"`
		Executed string         `json:"executed"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		return o, fmt.Errorf("the last line %.200q is no result line: %w (exit code %d)", line, err, exit)
	}
	if r.Script == nil || r.Mode == nil || r.State == nil {
		return o, fmt.Errorf("the result line %.200q lacks script, mode or state", line)
	}
	if *r.Script != name || *r.Mode != mode {
		return o, fmt.Errorf("the result line is about %.60q in mode %.20q", *r.Script, *r.Mode)
	}
	o = Outcome{*r.Script, *r.Mode, *r.State, r.Reboot, r.Message, r.Facts, r.Executed, exit}
	return o, o.agree()
}

// agree checks the exit code against the rest.
func (o Outcome) agree() error {
	ok := false
	switch {
	case o.State != Present && o.State != Absent && o.State != Failed:
		return fmt.Errorf("the state %.40q is none", o.State)
	case o.ExitCode == 0 && o.Mode == Test:
		ok = o.State != Failed
	case o.ExitCode == 0:
		ok = o.State != Failed && !o.Reboot
	case o.ExitCode == exitReboot:
		ok = o.State != Failed && o.Reboot && o.Mode == Set
	default:
		ok = o.State == Failed
	}
	if !ok {
		return fmt.Errorf("the result line (state %s, reboot %v) does not agree with exit code %d", o.State, o.Reboot, o.ExitCode)
	}
	return nil
}

// lastLine returns the last line that is not blank.
func lastLine(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n")
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		b = b[i+1:]
	}
	return bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
}
