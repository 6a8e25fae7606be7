package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// script is a build as an engine reports it.
func script() []report.Event {
	at := func(seconds float64, e report.Event) report.Event {
		e.Time = start.Add(time.Duration(seconds * float64(time.Second)))
		return e
	}
	return []report.Event{
		at(0, report.Event{Kind: report.Warning, Message: "it is slow\nhere"}),
		at(0, report.Event{Kind: report.StageHit, Stage: "windows", Message: "installing Windows Server 2022"}),
		at(0, report.Event{Kind: report.StageStarted, Stage: "kube", Message: "compiling Kubernetes v1.37.2"}),
		at(0, report.Event{Kind: report.StageStarted, Stage: "features", Message: "installing Windows features", Expected: 47 * time.Second}),
		at(1, report.Event{Kind: report.StageProgress, Stage: "kube", Message: "compiling a", Done: 1, Total: 100}),
		at(2, report.Event{Kind: report.StageProgress, Stage: "kube", Message: "compiling b", Done: 2, Total: 100}),
		at(3, report.Event{Kind: report.StageProgress, Stage: "features", Message: "rebooting"}),
		at(4, report.Event{Kind: report.Log, Stage: "features", Message: "detail"}),
		at(12, report.Event{Kind: report.StageProgress, Stage: "kube", Message: "compiling c", Done: 50, Total: 100}),
		at(13, report.Event{Kind: report.StageProgress, Stage: "kube", Message: "linking", Done: 100, Total: 100}),
		at(14, report.Event{Kind: report.StageDone, Stage: "kube", Message: "compiling Kubernetes v1.37.2", Elapsed: 14 * time.Second}),
		at(15, report.Event{Kind: report.Note, Stage: "node", Message: "waiting for another build"}),
		at(16, report.Event{Kind: report.StageFailed, Stage: "features", Message: "installing Windows features: it broke", Elapsed: 16 * time.Second}),
		at(16, report.Event{Kind: report.StageStopped, Stage: "proof", Message: "proving the box: cancelled", Elapsed: time.Second}),
	}
}

func shown(t *testing.T, o Options) string {
	t.Helper()
	var b bytes.Buffer
	o.Err = &b
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.Say("a hint")
	for _, e := range script() {
		d.Emit(e)
	}
	d.Close()
	d.Close()
	return b.String()
}

func TestPlain(t *testing.T) {
	const want = `a hint
warning: it is slow here
windows    installing Windows Server 2022: in the store
kube       compiling Kubernetes v1.37.2
features   installing Windows features (took 47s before)
kube         compiling a (1%)
features     rebooting
kube         compiling c (50%)
kube         linking (100%)
kube       compiling Kubernetes v1.37.2: done in 14s
node       waiting for another build
features   failed after 16s
proof      stopped after 1.0s
`
	for _, o := range []Options{{}, {Progress: Auto}, {Progress: Plain}, {Color: ColorNever}} {
		if got := shown(t, o); got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", o, got, want)
		}
	}
	coloured := shown(t, Options{Color: ColorAlways, Getenv: func(string) string { return "1" }}) // NO_COLOR=1: the flag decides
	if coloured == want || uncoloured(coloured) != want {
		t.Errorf("with colours:\n%q", coloured)
	}
	if got := shown(t, Options{Verbose: true}); !strings.Contains(got, "features     detail\n") {
		t.Errorf("verbose:\n%s", got)
	}
}

func TestJSONIsOneObjectALine(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(shown(t, Options{Progress: JSON}), "\n"), "\n")
	want := append([]report.Event{{Kind: report.Note, Message: "a hint"}}, script()...)
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		var got report.Event
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if got.Time.IsZero() {
			t.Errorf("line %d has no time", i)
		}
		if i == 0 {
			got.Time = time.Time{}
		}
		if got != want[i] {
			t.Errorf("line %d: %+v, want %+v", i, got, want[i])
		}
	}
	if !strings.Contains(lines[4], `"expected_ns":47000000000`) {
		t.Errorf("no expected time in %s", lines[4])
	}
}

func TestNoneKeepsWarningsAndHints(t *testing.T) {
	if got := shown(t, Options{Progress: None}); got != "a hint\nwarning: it is slow here\n" {
		t.Errorf("got %q", got)
	}
}

// A machine that was kept is told of in every way to show progress: whoever
// asked for it waits for that.
func TestAKeptMachine(t *testing.T) {
	e := report.Event{Time: start, Kind: report.MachineKept, Stage: "features", Message: "it is kept",
		Kept: &report.Kept{Name: "features", Reason: "it\x1b[2J broke", PID: 7, Account: "wbox-bake", WinRM: "https://127.0.0.1:5986/wsman", Secrets: "/run/way-in.txt"}}
	for _, o := range []Options{{Progress: Plain}, {Progress: None}, {Progress: JSON}} {
		var b bytes.Buffer
		o.Err = &b
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		d.Emit(e)
		got := b.String()
		for _, want := range []string{"https://127.0.0.1:5986/wsman", "wbox-bake", "/run/way-in.txt"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", o.Progress, got, want)
			}
		}
		if strings.Contains(got, "\x1b") || o.Progress != JSON && strings.Count(got, "\n") != len(e.Kept.Lines()) {
			t.Errorf("%s: %q", o.Progress, got)
		}
	}
	up := scrolled(e, running{}, false, 30, false, look{})
	if !strings.Contains(up, "\nfeatures     WinRM       https://127.0.0.1:5986/wsman (NTLM)\n") {
		t.Errorf("in a narrow terminal: %q", up)
	}
}

func TestUnknownWays(t *testing.T) {
	for _, o := range []Options{{Progress: "loud"}, {Color: "blue"}, {Progress: JSON, Color: "blue"}} {
		_, err := New(o)
		var p *fault.Problem
		if !errors.As(err, &p) || p.Class != fault.Usage || p.Fix == "" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestConcurrentEvents is for the race detector.
func TestConcurrentEvents(t *testing.T) {
	var b bytes.Buffer
	l := newLive(&b, colourful, func() (int, int) { return 80, 24 }, true)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			stage := fmt.Sprint("s", i)
			l.Emit(report.Event{Kind: report.StageStarted, Stage: stage, Time: time.Now()})
			for n := range int64(100) {
				l.Emit(report.Event{Kind: report.StageProgress, Stage: stage, Done: n, Total: 100})
			}
			l.say("hint")
			l.Emit(report.Event{Kind: report.StageDone, Stage: stage})
		})
	}
	wg.Wait()
	l.close()
	l.Emit(report.Event{Kind: report.Warning, Message: "late"})
	if got := b.String(); !strings.HasSuffix(uncoloured(got), "warning: late\n") || l.stop != nil {
		t.Errorf("after close: %q", got[max(0, len(got)-80):])
	}
}

// TestTheScreenIsCleared: whatever ended last, nothing stays behind that moves.
func TestTheScreenIsCleared(t *testing.T) {
	for name, events := range map[string][]report.Event{
		"a stage":                 {{Kind: report.StageStarted, Stage: "a"}, {Kind: report.StageDone, Stage: "a", Message: "end"}},
		"a stage that failed":     {{Kind: report.StageStarted, Stage: "a"}, {Kind: report.StageFailed, Stage: "a", Message: "end"}},
		"counting":                {{Kind: report.StageProgress, Message: "moves", Done: 1, Total: 2}, {Kind: report.StageProgress, Message: "end", Done: 2, Total: 2}},
		"counting before a stage": {{Kind: report.StageProgress, Message: "moves", Done: 1, Total: 2}, {Kind: report.StageStarted, Stage: "a"}, {Kind: report.StageStopped, Stage: "a"}},
	} {
		var b bytes.Buffer
		l := newLive(&b, colourless, func() (int, int) { return 80, 24 }, false)
		for _, e := range events {
			e.Time = start
			l.Emit(e)
		}
		s := newScreen(t, 80, 24)
		s.write(b.String())
		if got := s.text(); l.block.shown || l.stop != nil || strings.Contains(got, "moves") || strings.Contains(got, "⠋") {
			t.Errorf("%s: the screen:\n%s", name, got)
		}
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 449 * time.Millisecond: "0.4s", 9999 * time.Millisecond: "9.9s", 12*time.Second + 900*time.Millisecond: "12s",
		59999 * time.Millisecond: "59s", 185 * time.Second: "3m05s", time.Hour - time.Second: "59m59s", 62 * time.Minute: "1h02m", 25 * time.Hour: "25h00m",
	} {
		if got := Elapsed(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		look  look
		want  string
	}{
		{"abc", 3, colourless, "abc"}, {"abcd", 3, colourless, "ab…"}, {"abcd", 3, ascii, "..."}, {"abcd", 2, ascii, ".."}, {"abcdef", 5, ascii, "ab..."},
		{"日本語", 6, colourless, "日本語"}, {"日本語", 5, colourless, "日本…"}, {"日本語", 4, colourless, "日…"}, {"日本語", 2, colourless, "…"},
		{"abc", 0, colourless, ""}, {"abc", -1, colourless, ""}, {"ab cd", 4, colourless, "ab…"},
	} {
		if got := c.look.fit(c.in, c.width); got != c.want {
			t.Errorf("fit(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in      string
		columns int
		want    string
	}{
		{"short", 80, "short"},
		{"one two three four", 10, "one two\n  three\n  four"},
		{"alongwordthatfitsnowhere x", 10, "alongwordthatfitsnowhere\n  x"},
		{"  vagrant box add /a/long/path.json", 10, "  vagrant box add /a/long/path.json"},
		{"", 1, ""},
	} {
		if got := wrap(c.in, c.columns); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.in, c.columns, got, c.want)
		}
	}
}

func TestPrintError(t *testing.T) {
	one := &fault.Problem{Class: fault.Host, Field: "qemu", Why: "is missing", Fix: "install it"}
	two := &fault.Problem{Class: fault.Input, Field: "--iso", Value: "x.iso", Why: "is no ISO", Fix: "give another"}
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{errors.New("it broke"), 1, "wbox: it broke\n"},
		{fault.Check(one), 4, "wbox: qemu: is missing; install it\n"},
		{fault.Check(one, two), 3, "wbox: 2 problems, nothing was started:\n  - qemu: is missing; install it\n  - --iso x.iso: is no ISO; give another\n"},
	} {
		var b bytes.Buffer
		if code := PrintError(&b, c.err); code != c.code || b.String() != c.want {
			t.Errorf("%v: code %d, %q", c.err, code, b.String())
		}
	}
}
