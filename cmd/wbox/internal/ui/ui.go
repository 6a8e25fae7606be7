// Package ui turns the engine's events into what people and programs read on
// standard error: a live display in a terminal, plain lines or JSON lines
// elsewhere. It also prints errors. Standard output belongs to the result and
// is never written here. It knows events and errors, not the builder, and must
// not import it.
//
// Reading order: ui.go (which renderer when), state.go (what is going on),
// render.go (a pure function from that to lines), live.go (the terminal).
package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// Progress names a way to show events.
type Progress string

// The ways to show events.
const (
	Auto  Progress = "auto"  // live in a terminal, plain elsewhere
	Plain Progress = "plain" // one line an event that people care for
	JSON  Progress = "json"  // one JSON object a line, every event
	None  Progress = "none"  // no progress, but warnings and hints
)

// Color says when to use colours.
type Color string

// When to use colours.
const (
	ColorAuto   Color = "auto"   // in a terminal that knows them, unless NO_COLOR is set
	ColorAlways Color = "always" // wherever standard error goes
	ColorNever  Color = "never"
)

// Options are what a Display works with.
type Options struct {
	Progress Progress            // Optional: default Auto
	Color    Color               // Optional: default ColorAuto
	Verbose  bool                // Optional: show detail too
	Err      io.Writer           // Required: standard error
	Getenv   func(string) string // Optional: the environment; default: it is empty
}

// Display shows events and hints. It is a report.Sink, safe for concurrent use.
type Display struct {
	r renderer
}

// renderer is one way to show events.
type renderer interface {
	report.Sink
	say(text string) // prints a line that belongs to no event
	stopping(text string)
	close()
}

// New returns a Display. An unknown way to show events or to colour them is a
// *fault.Problem of class fault.Usage.
func New(o Options) (*Display, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	switch o.Color {
	case "", ColorAuto, ColorAlways, ColorNever:
	default:
		return nil, &fault.Problem{Class: fault.Usage, Field: "--color", Value: string(o.Color), Why: "is not known",
			Fix: "use auto, always or never"}
	}
	k, size := o.terminal()
	switch o.Progress {
	case JSON:
		return &Display{&jsonLines{w: o.Err, enc: json.NewEncoder(o.Err)}}, nil
	case None:
		return &Display{&quiet{w: o.Err, look: k}}, nil
	case "", Auto:
		if size != nil {
			return &Display{newLive(o.Err, k, size, o.Verbose)}, nil
		}
		return &Display{newPlain(o.Err, k, o.Verbose)}, nil
	case Plain:
		return &Display{newPlain(o.Err, k, o.Verbose)}, nil
	}
	return nil, &fault.Problem{Class: fault.Usage, Field: "--progress", Value: string(o.Progress), Why: "is not known",
		Fix: "use auto, plain, json or none"}
}

// Emit shows an event.
func (d *Display) Emit(e report.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	d.r.Emit(e)
}

// Say prints a line for people that belongs to no event; running stages stay
// below it.
func (d *Display) Say(format string, args ...any) { d.r.say(fmt.Sprintf(format, args...)) }

// Stopping says that the user has stopped the build and that the stages that
// run will end.
func (d *Display) Stopping() {
	d.r.stopping("stopping, which may take some seconds; press Ctrl-C again to end at once")
}

// Close takes what moves off the screen. Whatever comes afterwards, events too,
// is printed as plain lines. It may be called twice.
func (d *Display) Close() { d.r.close() }

// jsonLines writes every event as one JSON object a line, hints as notes.
type jsonLines struct {
	mu  sync.Mutex
	w   io.Writer
	enc *json.Encoder
}

func (j *jsonLines) Emit(e report.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.enc.Encode(e) //nolint:errcheck // progress that can't be written is lost, the build is not
}

func (j *jsonLines) say(text string) {
	j.Emit(report.Event{Time: time.Now(), Kind: report.Note, Message: text})
}

func (j *jsonLines) stopping(text string) { j.say(text) }
func (j *jsonLines) close()               {}

// quiet shows warnings and hints, no progress.
type quiet struct {
	mu   sync.Mutex
	w    io.Writer
	look look
}

func (q *quiet) Emit(e report.Event) {
	switch {
	case e.Kind == report.Warning:
		q.say(q.look.warning(warningLabel + " " + oneLine(e.Message)))
	case e.Kept != nil: // whoever asked for it must hear of it
		q.say(kept(e))
	}
}

func (q *quiet) say(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fmt.Fprintln(q.w, text)
}

func (q *quiet) stopping(text string) { q.say(text) }
func (q *quiet) close()               {}
