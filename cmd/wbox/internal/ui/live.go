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
// the stages that run are drawn below and redrawn in place.
//
// The cursor rests at the start of the line below the block and is never
// hidden: a wbox that is killed leaves a terminal in order.
type live struct {
	w       io.Writer
	look    look
	size    func() (columns, rows int) // 0 columns where not known
	verbose bool

	mu      sync.Mutex
	state   state
	drawn   []string      // the block on the screen
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
	r, known := l.state.apply(e)
	up := scrolled(e, r, known, columns, l.verbose, l.look)
	switch {
	case up != "":
		l.draw(columns, rows, up)
	case e.Kind == report.StageStarted:
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

// close takes the block off the screen; of each stage that still runs, what it
// did last stays.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after != nil {
		return
	}
	var last []string
	for _, r := range l.state.running {
		text := r.title
		if r.now != "" {
			text += ": " + r.now
		}
		last = append(last, l.look.paint(yellow, "-")+" "+labelled(r.name, text))
	}
	l.state.running = nil
	columns, rows := l.measure()
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
	block := l.state.lines(columns, time.Now(), l.look)
	if rows > 1 && len(block) >= rows {
		block = block[:rows-1]
	}
	if text := frame(l.drawn, block, up, columns); text != "" {
		fmt.Fprint(l.w, text)
	}
	l.drawn = block
}

// frame is what turns the block on the screen into the next one, with lines
// scrolled up above it. A terminal that has become narrower has broken the
// old block's lines, so it takes more rows than it has lines.
func frame(old, block, up []string, columns int) string {
	rows := 0
	for _, line := range old {
		rows += max(1, (cells(line)+columns-1)/columns)
	}
	var b strings.Builder
	if rows > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", rows)
	}
	if rows > 0 || len(block)+len(up) > 0 {
		b.WriteString("\r")
	}
	clean := len(up) > 0 || rows != len(old)
	if clean {
		b.WriteString("\x1b[J")
	}
	for _, line := range up {
		b.WriteString(line + "\n")
	}
	for _, line := range block {
		if !clean { // line by line, so that nothing flickers
			b.WriteString("\x1b[K")
		}
		b.WriteString(line + "\n")
	}
	if !clean && rows > 0 {
		b.WriteString("\x1b[J")
	}
	return b.String()
}
