package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// recorder keeps every event.
type recorder struct {
	mu     sync.Mutex
	events []report.Event
}

func (r *recorder) Emit(e report.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) of(kind report.Kind, stage string) []report.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []report.Event
	for _, e := range r.events {
		if e.Kind == kind && e.Stage == stage {
			out = append(out, e)
		}
	}
	return out
}

func TestWhatIsExpectedIsReported(t *testing.T) {
	m := chain()
	e, rec := newEngine(t, t.TempDir()), &recorder{}
	e.Sink, e.Expected = rec, map[string]time.Duration{"windows": 40 * time.Minute}
	if _, err := e.Build(t.Context(), list(m), "box"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"windows": 40 * time.Minute, "cni": 0} {
		if got := rec.of(report.StageStarted, name); len(got) != 1 || got[0].Expected != want {
			t.Errorf("%s: started %v, want one that expects %v", name, got, want)
		}
	}
}

// TestOnlyTheCulpritFails: what another stage's failure stops has not failed.
func TestOnlyTheCulpritFails(t *testing.T) {
	m := chain()
	waiting := make(chan struct{})
	m["windows"].run = func(ctx context.Context, _ *stage.Work) error {
		close(waiting)
		<-ctx.Done()
		return fmt.Errorf("running: %w", ctx.Err())
	}
	m["bits"].run = func(context.Context, *stage.Work) error { <-waiting; return errors.New("no such file") }
	e, rec := newEngine(t, t.TempDir()), &recorder{}
	e.Sink = rec
	_, err := e.Build(t.Context(), list(m), "box")
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Fatalf("error %v", err)
	}
	if got := rec.of(report.StageFailed, "bits"); len(got) != 1 {
		t.Errorf("bits failed %d times", len(got))
	}
	if failed, stopped := rec.of(report.StageFailed, "windows"), rec.of(report.StageStopped, "windows"); len(failed) != 0 || len(stopped) != 1 {
		t.Errorf("windows failed %d times and was stopped %d times", len(failed), len(stopped))
	}
}

func TestCountedProgressIsThinned(t *testing.T) {
	m := chain()
	m["box"].run = func(_ context.Context, w *stage.Work) error {
		for i := range int64(100_000) {
			w.Sink.Emit(report.Event{Kind: report.StageProgress, Message: "packing", Done: i + 1, Total: 100_000})
		}
		return nil
	}
	e, rec := newEngine(t, t.TempDir()), &recorder{}
	e.Sink = rec
	if _, err := e.Build(t.Context(), list(m), "box"); err != nil {
		t.Fatal(err)
	}
	got := rec.of(report.StageProgress, "box")
	if n := len(got); n < 2 || n > 1000 || got[n-1].Done != 100_000 {
		t.Errorf("%d events", n)
	}
}
