package ui

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// tick is how often the display is drawn anew; the size of the terminal is
// read each time.
const tick = 200 * time.Millisecond

// live is the display in a terminal: what has ended scrolls up as plain lines,
// the stages that run are drawn below, after an empty line, and redrawn in
// place. The cursor is never hidden, so there is nothing to restore.
type live struct {
	w       io.Writer
	look    look
	size    func() (columns, rows int) // 0 columns where not known
	verbose bool

	mu      sync.Mutex
	state   state
	block   block         // on the screen
	below   bool          // the cursor is to rest below the block
	columns int           // of the terminal, as measured last
	stop    chan struct{} // not nil while the clock runs
	after   *plain        // not nil once closed
}

func newLive(w io.Writer, k look, size func() (columns, rows int), verbose bool) *live {
	return &live{w: w, look: k, size: size, verbose: verbose}
}

func (l *live) Emit(e report.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after != nil {
		l.after.Emit(e)
		return
	}
	columns, rows := l.measure()
	before := len(l.state.running)
	r, known := l.state.apply(e)
	up := scrolled(e, r, known, columns, l.verbose, l.look)
	switch {
	case up != "":
		l.draw(columns, rows, up)
	case len(l.state.running) != before:
		l.draw(columns, rows)
	}
	// Progress is drawn by the clock: thousands of events a second cost nothing.
	l.tend()
}

func (l *live) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after != nil {
		l.after.say(text)
		return
	}
	columns, rows := l.measure()
	l.draw(columns, rows, wrap(text, columns))
}

// stopping has the cursor rest below the block from now on: a wbox that is
// killed while it stops leaves the prompt there.
func (l *live) stopping(text string) {
	l.mu.Lock()
	l.below = true
	l.mu.Unlock()
	l.say(text)
}

// close takes the block off the screen; of each stage that still runs, what it
// did last stays.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after != nil {
		return
	}
	columns, rows := l.measure()
	var last []string
	for _, r := range l.state.running {
		room := max(leastText, columns-1-cells(labelled("- "+r.name, "")))
		last = append(last, l.look.paint(yellow, "- ")+labelled(r.name, l.look.fit(r.text(room), room)))
	}
	l.state.running = nil
	l.draw(columns, rows, last...)
	l.tend()
	l.after = newPlain(l.w, l.look, l.verbose)
}

// tend starts the clock when the first stage runs and stops it after the last.
func (l *live) tend() {
	switch busy := len(l.state.running) > 0; {
	case busy && l.stop == nil:
		l.stop = make(chan struct{})
		go l.run(l.stop)
	case !busy && l.stop != nil:
		close(l.stop)
		l.stop = nil
	}
}

func (l *live) run(stop <-chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			l.mu.Lock()
			l.draw(l.measure())
			l.mu.Unlock()
		}
	}
}

// measure reads the size of the terminal: where it can't be had for the
// moment, what it was.
func (l *live) measure() (columns, rows int) {
	columns, rows = l.size()
	if columns > 0 {
		l.columns = columns
	}
	return max(l.columns, 1), rows
}

// draw prints lines above the block and the block anew, in one write.
func (l *live) draw(columns, rows int, up ...string) {
	lines := l.state.lines(columns, time.Now(), l.look)
	if rows > 0 && len(lines) > rows-2 { // the empty line, and the cursor's below
		lines = lines[:max(0, rows-2)]
	}
	text, next := l.block.next(lines, up, l.below)
	fmt.Fprint(l.w, text)
	l.block = next
}

// block is what is on the screen of the stages that run.
type block struct {
	shown bool
	below int // how many rows the cursor is below the empty line that comes first
}

// next is what turns the block on the screen into one of lines, with the lines
// of up scrolled up above it.
//
// The cursor rests on the empty line above the block, unless below is wanted:
// a terminal that becomes narrower breaks the lines on it, and does so before
// anyone hears of it; how many rows there are to go up is then not known, but
// the cursor stays with its line. For the same reason lines are not to be
// broken while they are drawn.
func (b block) next(lines, up []string, below bool) (text string, next block) {
	const (
		eraseLine, eraseBelow = "\x1b[K", "\x1b[J"
		dontBreak, breakLines = "\x1b[?7l", "\x1b[?7h"
	)
	if !b.shown && len(lines)+len(up) == 0 {
		return "", b
	}
	var out strings.Builder
	goUp := func(rows int) {
		if rows > 0 {
			fmt.Fprintf(&out, "\x1b[%dA", rows)
		}
		out.WriteString("\r")
	}
	goUp(b.below)
	if len(up) > 0 || len(lines) == 0 {
		out.WriteString(eraseBelow)
	}
	for _, line := range up {
		out.WriteString(line + "\n")
	}
	if len(lines) == 0 {
		return out.String(), block{}
	}
	out.WriteString(dontBreak + eraseLine)
	for _, line := range lines { // erased line by line: nothing flickers
		out.WriteString("\n" + eraseLine + line)
	}
	next.shown = true
	if below {
		out.WriteString("\n")
		next.below = len(lines) + 1
	}
	out.WriteString(eraseBelow + breakLines)
	if !below {
		goUp(len(lines))
	}
	return out.String(), next
}
