package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// One stage fails, which cancels the others: the answer is why, never that
// something was cancelled, even where a target hears of that first.
func TestTheFirstFailureIsTheAnswer(t *testing.T) {
	file := []stage.Output{{Name: "file", Kind: stage.File}}
	for range 20 { // which target starts the stages decides whom the cancellation reaches
		boom := errors.New("boom")
		running := make(chan struct{}, 2)
		ends := func(after time.Duration) func(context.Context, *stage.Work) error {
			return func(ctx context.Context, _ *stage.Work) error {
				running <- struct{}{}
				<-ctx.Done()
				time.Sleep(after)
				return ctx.Err()
			}
		}
		fails := func(context.Context, *stage.Work) error { <-running; <-running; return boom }
		stages := []stage.Stage{
			&fakeStage{name: "quick", outputs: file, run: ends(0)},
			&fakeStage{name: "slow", outputs: file, run: ends(5 * time.Millisecond)},
			&fakeStage{name: "fails", outputs: file, run: fails},
			&fakeStage{name: "all", outputs: file, inputs: []stage.Input{stage.FromStage("q", "quick", "file"),
				stage.FromStage("s", "slow", "file"), stage.FromStage("f", "fails", "file")}},
			&fakeStage{name: "one", outputs: file, inputs: []stage.Input{stage.FromStage("q", "quick", "file")}},
		}
		_, err := newEngine(t, t.TempDir()).Build(t.Context(), stages, "all", "one")
		if !errors.Is(err, boom) {
			t.Fatalf("got %v, want the failure that came first", err)
		}
	}
}

// What lies below a hit may have been pruned: the build needs nothing of it and
// has nothing to do.
func TestWhatNoTargetNeedsCountsAsAHit(t *testing.T) {
	root := t.TempDir()
	build := func() []Built {
		t.Helper()
		built, err := newEngine(t, root).Build(t.Context(), list(chain()), "box")
		must(t, err)
		return built
	}
	for _, b := range build() {
		if b.Stage.Name() == "windows" {
			must(t, os.RemoveAll(newEngine(t, root).Store.Dir(b.Key)))
		}
	}
	for _, b := range build() {
		if !b.Hit {
			t.Errorf("%s counts as made, but nothing ran", b.Stage.Name())
		}
	}
}

// A failure keeps what was done before it and holds nothing that a second try
// would have to wait for.
func TestFailureCanBeRetriedAtOnce(t *testing.T) {
	m := chain()
	m["cni"].run = func(context.Context, *stage.Work) error { return errors.New("boom") }
	e := newEngine(t, t.TempDir())
	if _, err := e.Build(t.Context(), list(m), "box"); err == nil {
		t.Fatal("no error")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m["cni"].run = nil
	_, err := newEngine(t, e.Store.Root()).Build(ctx, list(m), "box")
	must(t, err)
	if n := m["windows"].runs.Load(); n != 1 {
		t.Errorf("windows ran %d times, want once: it was done before the failure", n)
	}
}

// A stage failed and kept something until the user pressed Ctrl-C; meanwhile
// another one failed too. How the build ended is the first failure.
func TestAFailureThatStandsIsTheAnswer(t *testing.T) {
	file := []stage.Output{{Name: "file", Kind: stage.File}}
	ctx, cancel := context.WithCancel(t.Context())
	boom, later := errors.New("boom"), errors.New("later")
	keeping := make(chan struct{})
	var kinds []report.Kind
	e := newEngine(t, t.TempDir())
	e.Sink = report.Tee(report.SinkFunc(func(ev report.Event) {
		if ev.Stage == "keeps" {
			kinds = append(kinds, ev.Kind)
		}
	}))
	stages := []stage.Stage{
		&fakeStage{name: "keeps", outputs: file, run: func(context.Context, *stage.Work) error {
			close(keeping)
			<-ctx.Done()
			return &fault.Standing{Err: boom}
		}},
		&fakeStage{name: "fails", outputs: file, run: func(context.Context, *stage.Work) error {
			<-keeping
			time.AfterFunc(20*time.Millisecond, cancel)
			return later
		}},
	}
	_, err := e.Build(ctx, stages, "keeps", "fails")
	if !errors.Is(err, boom) || errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(kinds) != 2 || kinds[1] != report.StageFailed {
		t.Errorf("events %v", kinds)
	}
}

// A file that has changed under its key is not used: the build ends, the result
// is marked, and the next build makes it anew and goes on.
func TestWhatChangedInTheStoreIsNotUsed(t *testing.T) {
	root := t.TempDir()
	first := chain()
	if _, err := newEngine(t, root).Build(t.Context(), list(first), "node", "bits"); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "results", "*", "exe"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	exe := paths[0]
	if err := os.Chmod(exe, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte("eXe"), 0o644); err != nil { // of the same size
		t.Fatal(err)
	}
	second := chain()
	_, err = newEngine(t, root).Build(t.Context(), list(second), "box")
	var p *fault.Problem
	if !errors.As(err, &p) || p.Value != exe || !strings.Contains(p.Fix, "run it again") || ran(second) != "" {
		t.Errorf("got %v, ran %q", err, ran(second))
	}
	third := chain()
	if _, err := newEngine(t, root).Build(t.Context(), list(third), "box"); err != nil || ran(third) != "bits payload box" {
		t.Errorf("got %v, ran %q", err, ran(third))
	}
	if data, err := os.ReadFile(exe); err != nil || string(data) != "exe" {
		t.Errorf("it is %q, %v", data, err)
	}
}
