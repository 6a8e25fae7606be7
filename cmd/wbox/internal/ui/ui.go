// Package ui turns the engine's events into what people and programs read:
// plain lines or JSON lines on standard error. It also prints errors. Standard
// output belongs to the result and is never written here.
package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// Progress names a way to show events.
type Progress string

// The ways to show events.
const (
	Auto  Progress = "auto"  // what fits where standard error goes
	Plain Progress = "plain" // one line an event that people care for
	JSON  Progress = "json"  // one JSON object a line, every event
	None  Progress = "none"  // warnings only
)

// New returns a Sink that shows events on w. An unknown way is a
// *fault.Problem of class fault.Usage.
func New(p Progress, w io.Writer, verbose bool) (report.Sink, error) {
	switch p {
	case JSON:
		return &jsonLines{enc: json.NewEncoder(w)}, nil
	case Auto, Plain:
		return &plain{w: w, verbose: verbose, last: map[string]time.Time{}}, nil
	case None:
		return report.SinkFunc(func(e report.Event) {
			if e.Kind == report.Warning {
				fmt.Fprintf(w, "warning: %s\n", e.Message)
			}
		}), nil
	}
	return nil, &fault.Problem{Class: fault.Usage, Field: "--progress", Value: string(p), Why: "is not known",
		Fix: "use auto, plain, json or none"}
}

type jsonLines struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (j *jsonLines) Emit(e report.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	j.enc.Encode(e) //nolint:errcheck // progress that can't be written is lost, the build is not
}

// quietFor is how long a stage's counted progress stays silent between lines.
const quietFor = 10 * time.Second

// plain prints one line an event. Counted progress is thinned out.
type plain struct {
	mu      sync.Mutex
	w       io.Writer
	verbose bool
	last    map[string]time.Time // stage -> when its counted progress was shown last
}

func (p *plain) Emit(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line := p.line(e); line != "" {
		fmt.Fprintln(p.w, line)
	}
}

func (p *plain) line(e report.Event) string {
	switch e.Kind {
	case report.StageStarted:
		return fmt.Sprintf("%-10s %s", e.Stage, e.Message)
	case report.StageHit:
		return fmt.Sprintf("%-10s %s: in the store", e.Stage, e.Message)
	case report.StageDone:
		return fmt.Sprintf("%-10s %s: done in %s", e.Stage, e.Message, Elapsed(e.Elapsed))
	case report.StageFailed:
		return fmt.Sprintf("%-10s failed after %s", e.Stage, Elapsed(e.Elapsed))
	case report.StageProgress:
		if e.Total > 0 && !p.due(e) {
			return ""
		}
		if e.Total > 0 {
			return fmt.Sprintf("%-10s   %s (%d of %d)", e.Stage, e.Message, e.Done, e.Total)
		}
		return fmt.Sprintf("%-10s   %s", e.Stage, e.Message)
	case report.Warning:
		return "warning: " + e.Message
	case report.Note:
		return strings.TrimSpace(fmt.Sprintf("%-10s %s", e.Stage, e.Message))
	case report.Log:
		if p.verbose {
			return fmt.Sprintf("%-10s   %s", e.Stage, e.Message)
		}
	}
	return ""
}

func (p *plain) due(e report.Event) bool {
	now := time.Now()
	if now.Sub(p.last[e.Stage]) < quietFor && e.Done < e.Total {
		return false
	}
	p.last[e.Stage] = now
	return true
}

// Elapsed writes a duration as people do: "0.4s", "12s", "3m05s".
func Elapsed(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// PrintError prints err, each problem of a request on a line of its own, and
// returns the exit code.
func PrintError(w io.Writer, err error) int {
	var p *fault.Preflight
	if !errors.As(err, &p) || len(p.Errs) == 1 {
		fmt.Fprintf(w, "wbox: %v\n", err)
		return int(fault.ClassOf(err))
	}
	fmt.Fprintf(w, "wbox: %d problems, nothing was started:\n", len(p.Errs))
	for _, e := range p.Errs {
		fmt.Fprintf(w, "  - %v\n", e)
	}
	return int(p.Class())
}

// Interrupted says how a build ended that the user stopped, and returns the
// exit code.
func Interrupted(w io.Writer, after time.Duration) int {
	fmt.Fprintf(w, "wbox: interrupted after %s; what was finished is kept, run the same command to go on\n", Elapsed(after))
	return int(fault.Interrupted)
}
