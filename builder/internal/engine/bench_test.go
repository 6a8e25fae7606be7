package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Figures, measured on 2 shared cores (Xeon, ext4 on a virtual disk), 11 stages:
//
//	BenchmarkPlanWarm       0.14 ms a stage, 1.5 ms in all
//	BenchmarkBuildWarm      0.12 ms a stage, 1.3 ms in all
//	BenchmarkExplainCold    3.5 ms a stage, over a store of 220 results
//	BenchmarkBuildCold     21 ms a stage, most of it flushing files and folders
//
// The promise is 50 ms a stage and a second for a plan.

// deepChain is n layers on each other, as a real build's, each with some parameters.
func deepChain(n int) []stage.Stage {
	var out []stage.Stage
	for i := range n {
		s := &fakeStage{name: fmt.Sprintf("s%02d", i), content: "x", outputs: disk, params: paramsOf("Containers", "Routing")}
		if i > 0 {
			s.inputs = []stage.Input{stage.FromStage("disk", fmt.Sprintf("s%02d", i-1), "disk")}
		}
		out = append(out, s)
	}
	return out
}

const deep = 11 // stages of a real build

func benchEngine(b *testing.B, root string) *Engine {
	s, err := cas.Open(root)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Release)
	id, dir, err := s.NewRun(time.Now())
	if err != nil {
		b.Fatal(err)
	}
	return &Engine{Store: s, Sink: report.Discard, RunID: id, Run: dir}
}

func perStage(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N*deep), "ms/stage")
}

// BenchmarkPlanWarm is a plan of which every stage is in the store.
func BenchmarkPlanWarm(b *testing.B) {
	e, stages := benchEngine(b, b.TempDir()), deepChain(deep)
	if _, err := e.Build(b.Context(), stages, "s10"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.Plan(b.Context(), stages); err != nil {
			b.Fatal(err)
		}
	}
	perStage(b)
}

// BenchmarkExplainCold explains a plan over a store with 220 results, none of
// which fits.
func BenchmarkExplainCold(b *testing.B) {
	e := benchEngine(b, b.TempDir())
	for i := range 20 {
		stages := deepChain(deep)
		stages[0].(*fakeStage).params = i
		if _, err := e.Build(b.Context(), stages, "s10"); err != nil {
			b.Fatal(err)
		}
	}
	stages := deepChain(deep)
	for b.Loop() {
		planned, err := e.Plan(b.Context(), stages)
		if err != nil {
			b.Fatal(err)
		}
		entries, err := e.Store.Entries()
		if err != nil {
			b.Fatal(err)
		}
		e.Explain(planned, entries)
	}
	perStage(b)
}

// BenchmarkBuildWarm is a build with nothing to do.
func BenchmarkBuildWarm(b *testing.B) {
	e, stages := benchEngine(b, b.TempDir()), deepChain(deep)
	if _, err := e.Build(b.Context(), stages, "s10"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.Build(b.Context(), stages, "s10"); err != nil {
			b.Fatal(err)
		}
	}
	perStage(b)
}

// BenchmarkBuildCold makes every stage; what a stage does takes no time, so
// that what is left is the engine's, with all its flushing to the disk.
func BenchmarkBuildCold(b *testing.B) {
	e := benchEngine(b, b.TempDir())
	n := 0
	for b.Loop() {
		stages := deepChain(deep)
		n++
		stages[0].(*fakeStage).params = n
		if _, err := e.Build(b.Context(), stages, "s10"); err != nil {
			b.Fatal(err)
		}
	}
	perStage(b)
}

// TestOverheadPerStage holds the promise with room for a busy machine.
func TestOverheadPerStage(t *testing.T) {
	e, stages := newEngine(t, t.TempDir()), deepChain(deep)
	_, err := e.Build(t.Context(), stages, "s10")
	must(t, err)
	const most = 50 * time.Millisecond
	best := time.Hour
	for range 5 {
		begin := time.Now()
		_, err := e.Plan(t.Context(), stages)
		must(t, err)
		_, err = e.Build(t.Context(), stages, "s10")
		must(t, err)
		best = min(best, time.Since(begin)/deep)
	}
	if best > most {
		t.Errorf("planning and building what is there takes %v a stage, more than %v", best, most)
	}
}
