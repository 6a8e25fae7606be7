package ui

import (
	"fmt"
	"time"

	"github.com/cheggaaa/pb/v3"

	"github.com/wbox-dev/wbox/builder/report"
)

// widest is where the display stops to grow: on a very wide screen, times far
// right of what they belong to can't be read.
const widest = 110

// leastText is how many cells of a text are worth showing.
const leastText = 8

// lines renders the stages that run, one line each, for a terminal of that
// many columns. No line reaches the last column: some terminals wrap there.
func (s *state) lines(columns int, now time.Time, k look) []string {
	width := min(columns, widest) - 1
	if width <= 0 {
		return nil
	}
	out := make([]string, len(s.running))
	for i, r := range s.running {
		out[i] = r.line(width, now, k)
	}
	return out
}

// line is "<spinner> <name> <what> <bar> <percent> <time>"; what does not fit
// is left out, from the bar on.
func (r running) line(width int, now time.Time, k look) string {
	elapsed := max(0, now.Sub(r.started))
	spin := k.spinner(elapsed)
	if width < 24 {
		return k.fit(spin+" "+r.name+" "+clock(elapsed), width)
	}
	left := pad(k.fit(r.name, nameWidth), nameWidth)
	times := r.times(elapsed, width, k)
	room := width - cells(spin) - 1 - nameWidth - 1 - 1 - cells(times)
	bar := r.bar(width, k)
	if rest := room - cells(bar) - 1; bar != "" && rest >= leastText {
		room, bar = rest, " "+bar
	} else {
		bar = ""
	}
	return k.paint(cyan, spin) + " " + left + " " + pad(k.fit(r.text(room), room), room) + bar + " " + k.paint(dim, times)
}

// text is what a running stage does: its title and its latest progress, the
// latter alone where there is no room for both.
func (r running) text(room int) string {
	if r.now == "" {
		return r.title
	}
	if both := r.title + ": " + r.now; r.title != "" && cells(both) <= room {
		return both
	}
	return r.now
}

// times is how long the stage has run, and how long it is expected to.
func (r running) times(elapsed time.Duration, width int, k look) string {
	if width < 60 || r.loose {
		return fmt.Sprintf("%6s", clock(elapsed))
	}
	expected := "?" // nothing was measured here yet
	if r.expected > 0 {
		expected = "~" + clock(max(r.expected, time.Second))
	}
	return fmt.Sprintf("%6s of %s", clock(elapsed), expected)
}

// bar is how much of what is counted is done, with a bar where there is room.
func (r running) bar(width int, k look) string {
	if r.total <= 0 {
		return ""
	}
	n := percent(r.done, r.total)
	cellsOfBar := 0
	switch {
	case width >= 90:
		cellsOfBar = 24
	case width >= 70:
		cellsOfBar = 16
	case width >= 55:
		cellsOfBar = 8
	}
	if cellsOfBar == 0 {
		return fmt.Sprintf("%3d%%", n)
	}
	return k.paint(green, drawBar(n, cellsOfBar, k)) + fmt.Sprintf(" %3d%%", n)
}

// drawBar uses pb for the drawing alone. Its own writers are not used: outside
// of a terminal and in one of no width they print garbage, and in one they
// leave no room for lines that scroll up above the bars.
func drawBar(percent int64, width int, k look) string {
	t := pb.ProgressBarTemplate(`{{bar . "[" "=" ">" " " "]"}}`)
	if k.unicode {
		t = `{{bar . " " "█" "█" "░" " "}}`
	}
	bar := pb.New64(100).SetCurrent(percent).SetWidth(width).SetTemplate(t)
	bar.Set(pb.Static, true).Set(pb.Terminal, false).Set(pb.Color, false)
	return bar.String()
}

// spinner is a sign of life.
func (k look) spinner(elapsed time.Duration) string {
	frames := []rune(k.pick("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", `|/-\`))
	return string(frames[int(elapsed/tick)%len(frames)])
}

// scrolled is the line that an event leaves behind above the stages that run,
// or "". r is the event's stage, if known says that it ran. Prose is wrapped.
func scrolled(e report.Event, r running, known bool, columns int, verbose bool, k look) string {
	// ended is one line, whatever the width: "<mark> <name> <title> (<how>)".
	ended := func(sgr, mark, how string) string {
		title := r.title
		if !known || r.loose {
			title = oneLine(e.Message)
		}
		mark += " "
		how = " (" + how + ")"
		title = labelled(e.Stage, k.fit(title, max(leastText, columns-1-cells(mark+labelled(e.Stage, how)))))
		if sgr == dim {
			return k.paint(dim, mark+title+how)
		}
		return k.paint(sgr, mark) + title + k.paint(dim, how)
	}
	indent := "  "
	switch e.Kind {
	case report.StageDone:
		return ended(green, k.pick("✓", "+"), Elapsed(e.Elapsed))
	case report.StageFailed:
		return ended(red, k.pick("✗", "x"), "failed after "+Elapsed(e.Elapsed))
	case report.StageStopped:
		return ended(yellow, "-", "stopped after "+Elapsed(e.Elapsed))
	case report.StageHit:
		return ended(dim, k.pick("✓", "+"), "in the store")
	case report.MachineKept:
		return kept(e)
	case report.Warning:
		return k.warning(wrap(warningLabel+" "+oneLine(e.Message), columns))
	case report.Note:
		if e.Stage == "" {
			return wrap(oneLine(e.Message), columns)
		}
		return indent + labelled(e.Stage, oneLine(e.Message))
	case report.StageProgress:
		if took := e.Time.Sub(r.started); r.over() && took >= time.Second {
			return ended(green, k.pick("✓", "+"), Elapsed(took))
		}
		if !known && e.Total <= 0 && e.Message != "" { // of no stage that runs: still worth a line
			return indent + labelled(e.Stage, oneLine(e.Message))
		}
	case report.Log:
		if verbose {
			return indent + k.paint(dim, labelled(e.Stage, oneLine(e.Message)))
		}
	}
	return ""
}
