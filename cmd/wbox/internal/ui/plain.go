package ui

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// quietFor is how long a stage's counted progress stays silent between lines.
const quietFor = 10 * time.Second

// plain prints one line an event. Counted progress is thinned out.
type plain struct {
	mu      sync.Mutex
	w       io.Writer
	look    look
	verbose bool
	last    map[string]time.Time // stage -> when its counted progress was shown last
}

func newPlain(w io.Writer, k look, verbose bool) *plain {
	return &plain{w: w, look: k, verbose: verbose, last: map[string]time.Time{}}
}

func (p *plain) Emit(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line := p.line(e); line != "" {
		fmt.Fprintln(p.w, line)
	}
}

func (p *plain) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, text)
}

func (p *plain) stopping(text string) { p.say(text) }
func (p *plain) close()               {}

func (p *plain) line(e report.Event) string {
	k, message := p.look, oneLine(e.Message)
	switch e.Kind {
	case report.StageStarted:
		if e.Expected > 0 {
			message += k.paint(dim, " (took "+Elapsed(e.Expected)+" before)")
		}
		return labelled(e.Stage, message)
	case report.StageHit:
		return k.paint(dim, labelled(e.Stage, message+": in the store"))
	case report.StageDone:
		return labelled(e.Stage, message+": "+k.paint(green, "done")+" in "+Elapsed(e.Elapsed))
	case report.StageFailed:
		return labelled(e.Stage, k.paint(red, "failed")+" after "+Elapsed(e.Elapsed))
	case report.StageStopped:
		return labelled(e.Stage, k.paint(yellow, "stopped")+" after "+Elapsed(e.Elapsed))
	case report.StageProgress:
		if e.Total <= 0 {
			return labelled(e.Stage, "  "+message)
		}
		if p.due(e) {
			return labelled(e.Stage, fmt.Sprintf("  %s (%d%%)", message, percent(e.Done, e.Total)))
		}
	case report.MachineKept:
		return kept(e)
	case report.Warning:
		return k.warning(warningLabel + " " + message)
	case report.Note:
		return labelled(e.Stage, message)
	case report.Log:
		if p.verbose {
			return labelled(e.Stage, k.paint(dim, "  "+message))
		}
	}
	return ""
}

// due says whether counted progress is to be shown again.
func (p *plain) due(e report.Event) bool {
	if e.Time.Sub(p.last[e.Stage]) < quietFor && e.Done < e.Total {
		return false
	}
	p.last[e.Stage] = e.Time
	return true
}
