package ui

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/cheggaaa/pb/v3"

	"github.com/wbox-dev/wbox/builder/report"
)

// look is what the output may use.
type look struct {
	color   bool
	unicode bool // the terminal shows more than ASCII
}

// The colours of the display, as SGR parameters.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint colours s, which has no line break.
func (k look) paint(sgr, s string) string {
	if !k.color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// pick returns the first where the terminal shows it, else the second.
func (k look) pick(unicode, ascii string) string {
	if k.unicode {
		return unicode
	}
	return ascii
}

// warning colours a line that begins with warningLabel.
func (k look) warning(line string) string {
	return k.paint(yellow, warningLabel) + strings.TrimPrefix(line, warningLabel)
}

// warningLabel is how a line begins that the user should not overlook.
const warningLabel = "warning:"

// kept says how to get into a machine that was kept, in lines that are not
// broken: addresses and paths are there to be copied.
func kept(e report.Event) string {
	if e.Kept == nil {
		return labelled(e.Stage, oneLine(e.Message))
	}
	lines := e.Kept.Lines()
	for i := range lines {
		lines[i] = labelled(e.Stage, strings.TrimRight(strings.Map(printable, lines[i]), " "))
	}
	return strings.Join(lines, "\n")
}

// nameWidth is the width of the column of stage names, in cells.
const nameWidth = 10

// labelled puts a stage's name in front of a text.
func labelled(stage, text string) string {
	if stage == "" {
		return text
	}
	return pad(stage, nameWidth) + " " + text
}

// oneLine makes a message safe to print as part of a line: what a guest or a
// tool said may hold line breaks and escape sequences.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.TrimSpace(strings.Map(printable, s))
}

// printable maps what would move the cursor, or more, to a space.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// cells is how many columns of a terminal s takes.
func cells(s string) int { return pb.CellCount(s) }

// pad fills s with spaces up to width cells.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-cells(s)))
}

// fit shortens s to at most width cells and says so with an ellipsis.
func (k look) fit(s string, width int) string {
	if cells(s) <= width {
		return s
	}
	more := k.pick("…", "...")
	if cells(more) > width {
		return strings.Repeat(".", max(0, width))
	}
	return strings.TrimRight(pb.StripString(s, width-cells(more)), " ") + more
}

// wrap breaks prose at spaces into lines of less than columns cells, all but the
// first indented. A text that is indented itself is a command to copy and stays
// as it is. It must not be coloured.
func wrap(s string, columns int) string {
	const indent = "  "
	if strings.HasPrefix(s, indent) || cells(s) < columns {
		return s
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(s) {
		n := cells(word)
		switch {
		case i == 0:
		case used+1+n < columns:
			b.WriteByte(' ')
			used++
		default:
			b.WriteString("\n" + indent)
			used = cells(indent)
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// Elapsed writes a duration as people do: "0.4s", "12s", "3m05s", "1h02m".
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", max(0, d.Truncate(100*time.Millisecond).Seconds()))
	}
	return clock(d)
}

// clock writes a duration in whole seconds: it is for what changes while one
// looks at it.
func clock(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// percent is how much of total is done: 100 only when all of it is.
func percent(done, total int64) int64 {
	if total <= 0 {
		return 0
	}
	return int64(100 * (float64(min(max(done, 0), total)) / float64(total)))
}
