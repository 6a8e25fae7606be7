package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// fakeStage writes content into each output and counts its runs.
type fakeStage struct {
	name    string
	inputs  []stage.Input
	outputs []stage.Output
	params  any
	content string
	vm      bool
	pass    string
	always  string
	run     func(context.Context, *stage.Work) error
	runs    atomic.Int32
}

func (f *fakeStage) Name() string            { return f.name }
func (f *fakeStage) Title() string           { return "making " + f.name }
func (f *fakeStage) Inputs() []stage.Input   { return f.inputs }
func (f *fakeStage) Outputs() []stage.Output { return f.outputs }
func (f *fakeStage) Needs() stage.Resources  { return stage.Resources{VM: f.vm} }
func (f *fakeStage) PassThrough() string     { return f.pass }
func (f *fakeStage) Volatile() string        { return f.always }
func (f *fakeStage) Fingerprint() stage.Fingerprint {
	return stage.Fingerprint{Version: 1, Params: f.params}
}
func (f *fakeStage) Run(ctx context.Context, w *stage.Work) error {
	f.runs.Add(1)
	if f.run != nil {
		if err := f.run(ctx, w); err != nil {
			return err
		}
	}
	for _, o := range f.outputs {
		if err := os.WriteFile(w.Out(o.Name), []byte(f.content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var disk = []stage.Output{{Name: "disk", Kind: stage.Disk}}

// chain is bits + windows -> node -> payload -> box, the shape of a real build.
func chain() map[string]*fakeStage {
	return map[string]*fakeStage{
		"bits":    {name: "bits", content: "exe", outputs: []stage.Output{{Name: "exe", Kind: stage.File, Deterministic: true}}},
		"windows": {name: "windows", content: "w", outputs: disk, vm: true, inputs: []stage.Input{stage.Locked("iso", "sha256:1", "/iso")}},
		"cni":     {name: "cni", content: "c", outputs: disk, vm: true, inputs: []stage.Input{stage.FromStage("disk", "windows", "disk")}},
		"node":    {name: "node", content: "n", outputs: disk, vm: true, inputs: []stage.Input{stage.FromStage("disk", "cni", "disk")}},
		"payload": {name: "payload", content: "p", outputs: disk, inputs: []stage.Input{
			stage.FromStage("exe", "bits", "exe"), stage.FromStage("disk", "node", "disk")}},
		"box": {name: "box", content: "b", outputs: []stage.Output{{Name: "box", Kind: stage.File, Deterministic: true}},
			inputs: []stage.Input{stage.FromStage("disk", "payload", "disk")}},
	}
}

func list(m map[string]*fakeStage) []stage.Stage {
	var out []stage.Stage
	for _, n := range []string{"bits", "windows", "cni", "node", "payload", "box"} {
		out = append(out, m[n])
	}
	return out
}

func newEngine(t *testing.T, root string) *Engine {
	t.Helper()
	s, err := cas.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	id, dir, err := s.NewRun(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &Engine{Store: s, Sink: report.Discard, RunID: id, Run: dir}
}

func ran(m map[string]*fakeStage) string {
	var out []string
	for _, n := range []string{"bits", "windows", "cni", "node", "payload", "box"} {
		if m[n].runs.Load() > 0 {
			out = append(out, n)
		}
	}
	return strings.Join(out, " ")
}

func TestBuildRunsOnlyWhatChanged(t *testing.T) {
	root := t.TempDir()
	for _, step := range []struct {
		name   string
		change func(map[string]*fakeStage)
		want   string
	}{
		{"cold", func(map[string]*fakeStage) {}, "bits windows cni node payload box"},
		{"nothing changed", func(map[string]*fakeStage) {}, ""},
		{"other source, same bytes", func(m map[string]*fakeStage) { m["bits"].params = "v2" }, "bits"},
		{"other bytes", func(m map[string]*fakeStage) { m["bits"].params, m["bits"].content = "v3", "exe3" }, "bits payload box"},
		{"back again", func(map[string]*fakeStage) {}, ""},
		{"a layer's parameters", func(m map[string]*fakeStage) { m["node"].params = "1.38" }, "node payload box"},
		{"an early layer", func(m map[string]*fakeStage) { m["cni"].params = "calico" }, "cni node payload box"},
		{"nothing to do in cni", func(m map[string]*fakeStage) { m["cni"].pass = "none" }, "node payload box"},
		{"another ISO", func(m map[string]*fakeStage) { m["windows"].inputs[0].Digest = "sha256:2" }, "windows cni node payload box"},
		{"the same ISO elsewhere", func(m map[string]*fakeStage) { m["windows"].inputs[0].Path = "/elsewhere" }, ""},
	} {
		m := chain()
		step.change(m)
		if _, err := newEngine(t, root).Build(t.Context(), list(m), "box"); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := ran(m); got != step.want {
			t.Errorf("%s: ran %q, want %q", step.name, got, step.want)
		}
	}
}

func TestPassThroughHandsOnTheParentsDisk(t *testing.T) {
	m := chain()
	m["cni"].pass = "no CNI"
	m["node"].run = func(_ context.Context, w *stage.Work) error {
		b, err := os.ReadFile(w.In("disk"))
		if err == nil && string(b) != "w" {
			err = errors.New("node got " + string(b))
		}
		return err
	}
	e := newEngine(t, t.TempDir())
	built, err := e.Build(t.Context(), list(m), "box")
	if err != nil {
		t.Fatal(err)
	}
	if built[2].PassThrough != "no CNI" || built[2].Result != nil {
		t.Errorf("cni: %+v", built[2])
	}
	if p := built[3].Result.Parents; len(p) != 1 || p[0] != built[1].Key {
		t.Errorf("node's parents %v, want windows %s", p, built[1].Key)
	}
}

func TestDamageIsAMiss(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"output gone": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "disk"))) },
		"output truncated": func(t *testing.T, dir string) {
			must(t, os.Chmod(filepath.Join(dir, "disk"), 0o644))
			must(t, os.Truncate(filepath.Join(dir, "disk"), 0))
		},
		"result garbled": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "result.json"), []byte("{"), 0o644))
		},
		"result gone": func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			m := chain()
			built, err := newEngine(t, root).Build(t.Context(), list(m), "box")
			must(t, err)
			// box is damaged by changing its key, so that the chain is looked at.
			damage(t, filepath.Join(root, "results", built[2].Key))
			m2 := chain()
			m2["box"].params = "other"
			_, err = newEngine(t, root).Build(t.Context(), list(m2), "box")
			must(t, err)
			if got := ran(m2); got != "cni node payload box" && got != "cni box" {
				t.Errorf("ran %q", got)
			}
			if m2["cni"].runs.Load() != 1 {
				t.Error("the damaged layer was not made again")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCompileRunsBesideTheLayers(t *testing.T) {
	m := chain()
	inBits, inWindows := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}) func(context.Context, *stage.Work) error {
		return func(ctx context.Context, _ *stage.Work) error {
			close(mine)
			select {
			case <-other:
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("ran alone")
			}
		}
	}
	m["bits"].run, m["windows"].run = meet(inBits, inWindows), meet(inWindows, inBits)
	_, err := newEngine(t, t.TempDir()).Build(t.Context(), list(m), "box")
	must(t, err)
}

func TestOneVMAtATime(t *testing.T) {
	var now, most atomic.Int32
	busy := func(context.Context, *stage.Work) error {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		return nil
	}
	var stages []stage.Stage
	var names []string
	for _, n := range []string{"a", "b", "c", "d"} {
		stages = append(stages, &fakeStage{name: n, vm: true, outputs: disk, run: busy})
		names = append(names, n)
	}
	_, err := newEngine(t, t.TempDir()).Build(t.Context(), stages, names...)
	must(t, err)
	if most.Load() != 1 {
		t.Errorf("%d virtual machines at once", most.Load())
	}
}

func TestFailureLeavesNothingAndCancelsTheRest(t *testing.T) {
	root := t.TempDir()
	m := chain()
	started := make(chan struct{})
	m["bits"].run = func(ctx context.Context, _ *stage.Work) error { <-started; return errors.New("no such file") }
	m["windows"].run = func(ctx context.Context, _ *stage.Work) error { close(started); <-ctx.Done(); return ctx.Err() }
	_, err := newEngine(t, root).Build(t.Context(), list(m), "box")
	if err == nil || !strings.Contains(err.Error(), "making bits: no such file") {
		t.Fatalf("error %v", err)
	}
	left, err := os.ReadDir(filepath.Join(root, "results"))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left in the store: %v", left)
	}
}

func TestInterruptedBuildSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := chain()
	m["windows"].run = func(ctx context.Context, _ *stage.Work) error { cancel(); <-ctx.Done(); return ctx.Err() }
	_, err := newEngine(t, t.TempDir()).Build(ctx, list(m), "box")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestMissingOutputIsAnError(t *testing.T) {
	s := &fakeStage{name: "a", outputs: disk}
	s.run = func(_ context.Context, w *stage.Work) error { return os.Mkdir(w.Out("disk"), 0o755) }
	if _, err := newEngine(t, t.TempDir()).Build(t.Context(), []stage.Stage{s}, "a"); err == nil {
		t.Error("a folder passed for a disk")
	}
}

func TestPruneTakesNothingThatABuildUses(t *testing.T) {
	root := t.TempDir()
	m := chain()
	_, err := newEngine(t, root).Build(t.Context(), list(m), "node")
	must(t, err)
	e := newEngine(t, root)
	iso := filepath.Join(t.TempDir(), "iso")
	must(t, os.WriteFile(iso, []byte("iso"), 0o644))
	blob, err := e.Store.AddBlob(t.Context(), iso, nil)
	must(t, err)
	pruneAll := func() {
		s, err := cas.Open(root)
		must(t, err)
		_, err = s.Prune(t.Context(), time.Now(), cas.Limits{MaxSize: 0})
		must(t, err)
	}
	m = chain()
	m["bits"].params, m["payload"].params = "v2", "v2" // so that the nodes' disk is used
	m["bits"].inputs = []stage.Input{stage.Locked("source", blob.Digest, blob.Path)}
	m["bits"].run = func(_ context.Context, w *stage.Work) error {
		pruneAll()
		_, err := os.ReadFile(w.In("source"))
		return err
	}
	m["payload"].run = func(_ context.Context, w *stage.Work) error {
		pruneAll()
		_, err := os.ReadFile(w.In("disk"))
		return err
	}
	m["box"].run = func(context.Context, *stage.Work) error { pruneAll(); return nil }
	built, err := e.Build(t.Context(), list(m), "box")
	must(t, err)
	for _, b := range built {
		if b.Result == nil {
			t.Errorf("%s was pruned", b.Stage.Name())
		}
	}
}

func TestBadGraphs(t *testing.T) {
	a := &fakeStage{name: "a", outputs: disk}
	for name, stages := range map[string][]stage.Stage{
		"twice":          {a, a},
		"unknown stage":  {&fakeStage{name: "b", inputs: []stage.Input{stage.FromStage("x", "c", "disk")}}},
		"unknown output": {a, &fakeStage{name: "b", inputs: []stage.Input{stage.FromStage("x", "a", "file")}}},
	} {
		if _, err := newEngine(t, t.TempDir()).Build(t.Context(), stages, "a"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPlanRunsNothing(t *testing.T) {
	root := t.TempDir()
	m := chain()
	m["cni"].pass = "no CNI"
	p, err := newEngine(t, root).Plan(t.Context(), list(m))
	must(t, err)
	if got := statuses(p); got != "miss miss empty miss miss miss" || ran(m) != "" {
		t.Errorf("cold plan %q, ran %q", got, ran(m))
	}
	if p[4].Key != "" {
		t.Error("payload has a key before its content is known")
	}
	_, err = newEngine(t, root).Build(t.Context(), list(m), "box")
	must(t, err)
	p, err = newEngine(t, root).Plan(t.Context(), list(m))
	must(t, err)
	if got := statuses(p); got != "hit hit empty hit hit hit" {
		t.Errorf("warm plan %q", got)
	}
}

func statuses(p []Planned) string {
	var out []string
	for _, x := range p {
		out = append(out, string(x.Status))
	}
	return strings.Join(out, " ")
}

func TestTwoProcessesMakeAResultOnce(t *testing.T) {
	root := t.TempDir()
	var wg sync.WaitGroup
	var runs atomic.Int32
	for range 4 {
		e := newEngine(t, root)
		m := chain()
		m["windows"].run = func(context.Context, *stage.Work) error { runs.Add(1); time.Sleep(50 * time.Millisecond); return nil }
		wg.Go(func() {
			if _, err := e.Build(context.Background(), list(m), "box"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 {
		t.Errorf("windows was made %d times", runs.Load())
	}
}

func TestVolatileRunsEveryTime(t *testing.T) {
	root := t.TempDir()
	s := &fakeStage{name: "a", outputs: disk, always: "asks the network"}
	for range 2 {
		_, err := newEngine(t, root).Build(t.Context(), []stage.Stage{s}, "a")
		must(t, err)
	}
	if s.runs.Load() != 2 {
		t.Errorf("ran %d times", s.runs.Load())
	}
}

func TestKeyIgnoresFieldOrderAndKeepsNumbers(t *testing.T) {
	a, _, err := makeKey(keyDoc{Stage: "s", Fingerprint: stage.Fingerprint{Params: map[string]any{"b": 1, "a": int64(1) << 60}}})
	must(t, err)
	b, doc, err := makeKey(keyDoc{Stage: "s", Fingerprint: stage.Fingerprint{Params: struct {
		A int64 `json:"a"`
		B int   `json:"b"`
	}{1 << 60, 1}}})
	must(t, err)
	if a != b || !strings.Contains(string(doc), "1152921504606846976") {
		t.Errorf("keys %s and %s of %s", a, b, doc)
	}
}
