package ui

import (
	"fmt"
	"strings"
	"testing"
)

// screen is a small terminal: it understands what the display uses, breaks
// lines that are too long, scrolls, and refuses everything else.
type screen struct {
	t             *testing.T
	columns, rows int
	history       []string // what scrolled off the top
	lines         [][]rune
	x, y          int
	dontBreak     bool // what is written past the last column stays in it
}

func newScreen(t *testing.T, columns, rows int) *screen {
	s := &screen{t: t, columns: columns, rows: rows}
	s.lines = make([][]rune, rows)
	return s
}

func (s *screen) newline() {
	if s.y++; s.y == s.rows {
		s.history = append(s.history, string(s.lines[0]))
		s.lines = append(s.lines[1:], nil)
		s.y--
	}
}

func (s *screen) put(r rune) {
	switch {
	case s.x == s.columns && s.dontBreak:
		s.x--
	case s.x == s.columns:
		s.newline()
		s.x = 0
	}
	line := s.lines[s.y]
	for len(line) <= s.x {
		line = append(line, ' ')
	}
	line[s.x] = r
	s.lines[s.y] = line
	s.x++
}

// write feeds output to the screen. Wide characters are not for it.
func (s *screen) write(out string) {
	for rest := out; rest != ""; {
		var n int
		switch r := []rune(rest)[0]; r {
		case '\r':
			s.x, n = 0, 1
		case '\n': // as the line discipline makes it: with a return
			s.newline()
			s.x, n = 0, 1
		case '\x1b':
			n = s.escape(rest)
		default:
			s.put(r)
			n = len(string(r))
		}
		rest = rest[n:]
	}
}

func (s *screen) escape(in string) (n int) {
	end := strings.IndexFunc(in[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if in[1] != '[' || end < 0 {
		s.t.Fatalf("an escape sequence that the screen does not know: %q", in)
	}
	params, n := in[2:2+end], 2+end+1
	switch in[2+end] {
	case 'm':
	case 'h', 'l':
		if params != "?7" {
			s.t.Fatalf("an escape sequence that the screen does not know: %q", in[:n])
		}
		s.dontBreak = in[2+end] == 'l'
	case 'A':
		var up int
		if _, err := fmt.Sscan(params, &up); err != nil {
			s.t.Fatalf("%q: %v", in[:n], err)
		}
		s.y = max(0, s.y-up)
	case 'K':
		s.lines[s.y] = s.lines[s.y][:min(s.x, len(s.lines[s.y]))]
	case 'J':
		s.lines[s.y] = s.lines[s.y][:min(s.x, len(s.lines[s.y]))]
		for y := s.y + 1; y < s.rows; y++ {
			s.lines[y] = nil
		}
	default:
		s.t.Fatalf("an escape sequence that the screen does not know: %q", in[:n])
	}
	return n
}

// text is all that can be read, without what is empty at the end.
func (s *screen) text() string {
	all := append([]string{}, s.history...)
	for _, l := range s.lines {
		all = append(all, strings.TrimRight(string(l), " "))
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

// resize makes the screen as wide as told, and does with the lines what most
// terminals do: those that are too long are broken. It must not scroll.
func (s *screen) resize(columns int) {
	var lines [][]rune
	y := 0
	for i, l := range s.lines {
		if i == s.y {
			y = len(lines)
		}
		for len(l) > columns {
			lines, l = append(lines, l[:columns]), l[columns:]
		}
		lines = append(lines, l)
	}
	if y >= s.rows {
		s.t.Fatal("the test's screen is too small")
	}
	s.lines, s.y, s.columns = lines[:s.rows], y, columns
}

func TestBlock(t *testing.T) {
	s := newScreen(t, 20, 12)
	var b block
	var text string
	for _, step := range []struct {
		name    string
		columns int
		lines   []string
		up      []string
		below   bool
		want    string
	}{
		{"nothing yet", 20, nil, nil, false, ""},
		{"a hint", 20, nil, []string{"hint"}, false, "hint"},
		{"two stages", 20, []string{"a 1", "bb 1"}, nil, false, "hint\n\na 1\nbb 1"},
		{"in place, one line shorter", 20, []string{"a 2", "b 2"}, nil, false, "hint\n\na 2\nb 2"},
		{"one ends", 20, []string{"b 3"}, []string{"a done"}, false, "hint\na done\n\nb 3"},
		{"two more begin", 20, []string{"b 4", "c 4", "d 4"}, nil, false, "hint\na done\n\nb 4\nc 4\nd 4"},
		{"a block that shrinks without a word", 20, []string{"b 5"}, nil, false, "hint\na done\n\nb 5"},
		{"a line above that is longer than the screen is wide", 20, []string{"b 6"}, []string{"warning: 12345678901234567890"}, false,
			"hint\na done\nwarning: 12345678901\n234567890\n\nb 6"},
		{"a block as wide as can be", 20, []string{"b 7 567890123456789", "c"}, nil, false,
			"hint\na done\nwarning: 12345678901\n234567890\n\nb 7 567890123456789\nc"},
		{"the screen is narrower already, and breaks the block", 12, nil, nil, false, ""},
		{"but a last block is made for the wider one", 12, []string{"b 8 567890123456789", "c"}, nil, false,
			"hint\na done\nwarning: 123\n45678901\n234567890\n\nb 8 56789019\nc"},
		{"then the width is known", 12, []string{"b 9", "c 9"}, nil, false, "hint\na done\nwarning: 123\n45678901\n234567890\n\nb 9\nc 9"},
		{"the user presses Ctrl-C", 12, []string{"b 10"}, []string{"stopping"}, true,
			"hint\na done\nwarning: 123\n45678901\n234567890\nstopping\n\nb 10"},
		{"in place below", 12, []string{"b 11"}, nil, true, "hint\na done\nwarning: 123\n45678901\n234567890\nstopping\n\nb 11"},
		{"the end", 12, nil, []string{"b end"}, true, "hint\na done\nwarning: 123\n45678901\n234567890\nstopping\nb end"},
		{"and nothing more", 12, nil, nil, true, "hint\na done\nwarning: 123\n45678901\n234567890\nstopping\nb end"},
	} {
		if step.columns != s.columns {
			s.resize(step.columns)
			continue
		}
		text, b = b.next(step.lines, step.up, step.below)
		s.write(text)
		if got := s.text(); got != step.want {
			t.Fatalf("%s:\n%s\nwant\n%s", step.name, got, step.want)
		}
		if s.x != 0 || s.dontBreak {
			t.Errorf("%s: the cursor is in column %d, lines are broken: %v", step.name, s.x, !s.dontBreak)
		}
		if b.shown {
			s.write("^C\r") // what the user types is wiped out by the next frame
		}
	}
}
