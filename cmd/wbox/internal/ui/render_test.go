package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// start is when every scripted build starts.
var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// after is the state once the events have happened.
func after(events ...report.Event) *state {
	var s state
	for _, e := range events {
		if e.Time.IsZero() {
			e.Time = start
		}
		s.apply(e)
	}
	return &s
}

// sideBySide is a compile beside a layer.
func sideBySide() *state {
	return after(
		report.Event{Kind: report.StageStarted, Stage: "kube", Message: "compiling Kubernetes v1.37.2"},
		report.Event{Kind: report.StageStarted, Stage: "features", Message: "installing Windows features", Expected: 125 * time.Second},
		report.Event{Kind: report.StageProgress, Stage: "kube", Message: "compiling k8s.io/api/core/v1", Done: 812, Total: 1900},
		report.Event{Kind: report.StageProgress, Stage: "features", Message: "running 20-install-features"},
	)
}

var (
	colourless = look{unicode: true}
	ascii      = look{}
	colourful  = look{unicode: true, color: true}
)

func TestLines(t *testing.T) {
	now := start.Add(47*time.Second + 300*time.Millisecond)
	for _, c := range []struct {
		name    string
		state   *state
		columns int
		now     time.Time
		look    look
		want    string
	}{
		{"nothing runs", after(), 80, now, colourless, ""},
		{"a wide terminal", sideBySide(), 120, now, colourless, `
⠦ kube       compiling k8s.io/api/core/v1                            ██████████░░░░░░░░░░░░   42%    47s of ?
⠦ features   installing Windows features: running 20-install-features                           47s of ~2m05s`},
		{"80 columns", sideBySide(), 80, now, colourless, `
⠦ kube       compiling k8s.io/api/core/v1      ██████░░░░░░░░   42%    47s of ?
⠦ features   running 20-install-features                          47s of ~2m05s`},
		{"60 columns", sideBySide(), 60, now, colourless, `
⠦ kube       compiling k8s.io/api/cor…  ███░░░   42%    47s
⠦ features   running 20-install-features                47s`},
		{"40 columns", sideBySide(), 40, now, colourless, `
⠦ kube       compiling k8s…  42%    47s
⠦ features   running 20-install…    47s`},
		{"20 columns", sideBySide(), 20, now, colourless, `
⠦ kube 47s
⠦ features 47s`},
		{"8 columns", sideBySide(), 8, now, colourless, `
⠦ kube…
⠦ feat…`},
		{"2 columns", sideBySide(), 2, now, colourless, "\n…\n…"},
		{"1 column has no room", sideBySide(), 1, now, colourless, ""},
		{"a width that is not known", sideBySide(), 0, now, colourless, ""},
		{"a terminal of ASCII", sideBySide(), 80, now, ascii, `
| kube       compiling k8s.io/api/core/v1     [=====>        ]  42%    47s of ?
| features   running 20-install-features                          47s of ~2m05s`},
		{"it has only begun", after(report.Event{Kind: report.StageStarted, Stage: "windows", Message: "installing Windows Server 2022"}), 80, start, colourless, `
⠋ windows    installing Windows Server 2022                             0s of ?`},
		{"a clock that went backwards", after(report.Event{Kind: report.StageStarted, Stage: "windows", Message: "installing"}), 60, start.Add(-time.Hour), colourless, `
⠋ windows    installing                                  0s`},
		{"hours, and over the expected time", after(report.Event{Kind: report.StageStarted, Stage: "windows", Message: "installing", Expected: 59*time.Minute + 59*time.Second}),
			80, start.Add(25*time.Hour + 7*time.Minute), colourless, `
⠋ windows    installing                                       25h07m of ~59m59s`},
		{"wide characters, a long name and escape sequences", after(
			report.Event{Kind: report.StageStarted, Stage: "sehr-lange-stufe", Message: "t"},
			report.Event{Kind: report.StageProgress, Stage: "sehr-lange-stufe", Message: "日本語の\x1b[2Jファイルを\nコピーしています, längeres Wort"}), 60, start, colourless, `
⠋ sehr-lang… 日本語の [2Jファイルを コピーしていま…      0s`},
		{"finished counting", after(
			report.Event{Kind: report.StageStarted, Stage: "libvirt", Message: "packing the box"},
			report.Event{Kind: report.StageProgress, Stage: "libvirt", Message: "packing", Done: 1000, Total: 1000}), 60, start, colourless, `
⠋ libvirt    packing the box: packing   ██████  100%     0s`},
		{"almost finished is not finished, too much is", after(
			report.Event{Kind: report.StageStarted, Stage: "a", Message: "a"}, report.Event{Kind: report.StageStarted, Stage: "b", Message: "b"},
			report.Event{Kind: report.StageProgress, Stage: "a", Done: 9999, Total: 10000}, report.Event{Kind: report.StageProgress, Stage: "b", Done: 11, Total: 10}),
			40, start, colourless, `
⠋ a          a               99%     0s
⠋ b          b              100%     0s`},
	} {
		got := c.state.lines(c.columns, c.now, c.look)
		var want []string
		if c.want != "" {
			want = strings.Split(strings.TrimPrefix(c.want, "\n"), "\n")
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range got {
			if n := cells(line); n >= c.columns {
				t.Errorf("%s: a line takes %d of %d columns", c.name, n, c.columns)
			}
		}
	}
}

// TestLinesFitEverywhere: whatever the width and the texts, no line reaches
// the last column, with colours or without.
func TestLinesFitEverywhere(t *testing.T) {
	s := sideBySide()
	s.apply(report.Event{Kind: report.StageStarted, Stage: "日本語の長い名前です", Message: strings.Repeat("語", 90), Time: start})
	s.apply(report.Event{Kind: report.StageProgress, Stage: "日本語の長い名前です", Message: strings.Repeat("語e\u0301👩‍👩‍👧", 30), Done: 1, Total: 3, Time: start})
	for columns := range 250 {
		for _, k := range []look{colourless, colourful, ascii} {
			for _, line := range s.lines(columns, start.Add(100*time.Hour), k) {
				if n := cells(line); n >= columns {
					t.Fatalf("%d columns, %+v: %q takes %d", columns, k, line, n)
				}
			}
		}
	}
}

func TestColoursChangeNoText(t *testing.T) {
	for _, columns := range []int{20, 40, 80, 120} {
		plain, coloured := sideBySide().lines(columns, start, colourless), sideBySide().lines(columns, start, colourful)
		for i := range plain {
			if got := uncoloured(coloured[i]); got != plain[i] {
				t.Errorf("%q, want %q", got, plain[i])
			}
			if columns > 24 && coloured[i] == plain[i] {
				t.Errorf("%q has no colour", coloured[i])
			}
		}
	}
}

func uncoloured(s string) string {
	for _, sgr := range []string{dim, red, green, yellow, cyan, "0"} {
		s = strings.ReplaceAll(s, "\x1b["+sgr+"m", "")
	}
	return s
}

func TestScrolled(t *testing.T) {
	before := after(report.Event{Kind: report.StageStarted, Stage: "features", Message: "installing Windows features"})
	for _, c := range []struct {
		event report.Event
		want  string
	}{
		{report.Event{Kind: report.StageDone, Stage: "features", Elapsed: 47 * time.Second}, "✓ features   installing Windows features (47s)"},
		{report.Event{Kind: report.StageFailed, Stage: "features", Message: "installing Windows features: it broke", Elapsed: 9 * time.Second},
			"✗ features   installing Windows features (failed after 9.0s)"},
		{report.Event{Kind: report.StageStopped, Stage: "features", Elapsed: 3 * time.Minute}, "- features   installing Windows features (stopped after 3m00s)"},
		{report.Event{Kind: report.StageDone, Stage: "late", Message: "title", Elapsed: time.Hour}, "✓ late       title (1h00m)"},
		{report.Event{Kind: report.StageHit, Stage: "windows", Message: "installing Windows"}, "✓ windows    installing Windows (in the store)"},
		{report.Event{Kind: report.StageStarted, Stage: "node", Message: "preparing"}, ""},
		{report.Event{Kind: report.StageProgress, Stage: "features", Message: "rebooting"}, ""},
		{report.Event{Kind: report.StageProgress, Stage: "iso", Message: "hashing"}, "  iso        hashing"},
		{report.Event{Kind: report.StageProgress, Stage: "iso", Message: "hashing", Done: 1, Total: 2}, ""},
		{report.Event{Kind: report.Warning, Message: "KVM is there\nbut does not run guests, so it is really rather slow here"},
			"warning: KVM is there but does not run guests, so it is really rather\n  slow here"},
		{report.Event{Kind: report.Note, Message: "a note"}, "a note"},
		{report.Event{Kind: report.Note, Stage: "node", Message: "waiting"}, "  node       waiting"},
		{report.Event{Kind: report.Log, Message: "detail"}, ""},
		{report.Event{Kind: "of the future", Message: "?"}, ""},
	} {
		s := state{running: slices.Clone(before.running)}
		r, known := s.apply(c.event)
		if got := scrolled(c.event, r, known, 72, false, colourless); got != c.want {
			t.Errorf("%s: %q, want %q", c.event.Kind, got, c.want)
		}
	}
	narrow := report.Event{Kind: report.StageHit, Stage: "windows", Message: "installing Windows Server 2022"}
	if got := scrolled(narrow, running{}, false, 40, false, colourless); got != "✓ windows    installing… (in the store)" {
		t.Errorf("narrow: %q", got)
	}
	if got := scrolled(report.Event{Kind: report.Log, Stage: "kube", Message: "detail"}, running{}, false, 40, true, colourless); got != "  kube       detail" {
		t.Errorf("verbose: %q", got)
	}
}

// TestWhatIsNoStage: a download before the first stage is shown as one.
func TestWhatIsNoStage(t *testing.T) {
	at := func(seconds, done int64) report.Event {
		return report.Event{Kind: report.StageProgress, Stage: "iso", Message: "downloading x.iso", Done: done, Total: 100, Time: start.Add(time.Duration(seconds) * time.Second)}
	}
	s := after(at(0, 1), at(50, 50))
	const want = "⠋ iso        downloading x.iso                      ███████░░░░░░░   50%  1m00s"
	if got := s.lines(80, start.Add(time.Minute), colourless); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	last := at(90, 100)
	r, known := s.apply(last)
	if got := scrolled(last, r, known, 80, false, colourless); got != "✓ iso        downloading x.iso (1m30s)" || len(s.running) != 0 {
		t.Errorf("the end: %q, %d left", got, len(s.running))
	}
	r, known = s.apply(at(91, 100)) // done at once: not worth a line
	if got := scrolled(at(91, 100), r, known, 80, false, colourless); got != "" || len(s.running) != 0 {
		t.Errorf("done at once: %q, %d left", got, len(s.running))
	}
	s.apply(at(92, 5)) // broken off
	s.apply(report.Event{Kind: report.StageStarted, Stage: "windows", Message: "installing", Time: start})
	if len(s.running) != 1 || s.running[0].name != "windows" {
		t.Errorf("running %+v", s.running)
	}
}

func TestStateFollowsItsStages(t *testing.T) {
	s := after(
		report.Event{Kind: report.StageStarted, Stage: "a", Message: "A"},
		report.Event{Kind: report.StageStarted, Stage: "b", Message: "B"},
		report.Event{Kind: report.StageProgress, Stage: "a", Message: "old news"},
		report.Event{Kind: report.StageDone, Stage: "a"},
		report.Event{Kind: report.StageDone, Stage: "a"}, // twice
		report.Event{Kind: report.StageStarted, Stage: "c", Message: "C"},
		report.Event{Kind: report.StageFailed, Stage: "b"},
		report.Event{Kind: report.StageStarted, Stage: "a", Message: "again"},
	)
	var got []string
	for _, r := range s.running {
		got = append(got, fmt.Sprintf("%s=%s/%s", r.name, r.title, r.now))
	}
	if strings.Join(got, " ") != "c=C/ a=again/" {
		t.Errorf("running %v", got)
	}
}
