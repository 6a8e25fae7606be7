package builder

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/cni"
	"github.com/wbox-dev/wbox/builder/stages/componentbits"
	"github.com/wbox-dev/wbox/builder/stages/runtime"
)

// inputOf returns an input of a stage of a build.
func inputOf(t *testing.T, r *Resolved, name, input string) (stage.Input, bool) {
	t.Helper()
	for _, s := range pipeline(r, bake.Host{}) {
		if s.Name() != name {
			continue
		}
		for _, in := range s.Inputs() {
			if in.Name == input {
				return in, true
			}
		}
		return stage.Input{}, false
	}
	t.Fatalf("there is no stage %s", name)
	return stage.Input{}, false
}

// The programs of CNI and runtime come from stages of their own, which exist
// only where a source was named; the layers take their outputs.
func TestProgramsFeedTheirLayers(t *testing.T) {
	r := standInBuild(t, "antrea")
	for _, layer := range []struct{ name, folder string }{{cni.Name, cni.FolderName}, {runtime.Name, runtime.FolderName}} {
		if in, ok := inputOf(t, r, layer.name, layer.folder); ok {
			t.Errorf("without a source %s takes %+v", layer.name, in)
		}
	}
	r.Spec.CNI, r.Spec.Containerd = "antrea@main", "main"
	r.cni = programs{project: "antrea", source: fixedSource{}, ref: component.Ref{Version: "v2.7.0", Toolchain: "go1.26.8"}}
	r.runtime = programs{project: "containerd", source: fixedSource{}, ref: component.Ref{Version: "v1.7.28"}}
	for _, want := range []struct{ layer, folder, from string }{{cni.Name, cni.FolderName, componentbits.CNI}, {runtime.Name, runtime.FolderName, componentbits.Runtime}} {
		if in, ok := inputOf(t, r, want.layer, want.folder); !ok || in.From != want.from || in.Output != componentbits.Output {
			t.Errorf("%s takes %+v", want.layer, in)
		}
	}
	if r.Spec.CNIName() != "antrea" || r.Spec.BoxName(false) != "local/wbox-ws2022-antrea" {
		t.Errorf("the box is called %s", r.Spec.BoxName(false))
	}
}

// fixedSource is a source that is never asked.
type fixedSource struct{ component.Source }

// The same bytes from another source leave the layer's key as it is; other bytes
// don't. A second build compiles nothing.
func TestTheSameProgramsCauseNoWork(t *testing.T) {
	b := newTestBuilder(t, t.TempDir(), plenty)
	dir := componenttest.Programs(t, "antrea", "v2.7.0", "./cmd/antrea-agent", "./cmd/antrea-cni", "./cmd/antctl")
	runs := 0
	key := func(dir string, hit bool) string {
		t.Helper()
		runs++
		r := standInBuild(t, "antrea")
		r.Spec.CNI = "antrea@" + dir
		if err := r.cni.resolve(t.Context(), component.ParseCNI, r.Spec.CNI, "", component.Options{}, report.Discard); err != nil {
			t.Fatal(err)
		}
		e := &engine.Engine{Store: b.store, Sink: report.Discard, RunID: strconv.Itoa(runs), Run: t.TempDir()}
		built, err := e.Build(t.Context(), []stage.Stage{r.cni.stage(componentbits.CNI)}, componentbits.CNI)
		if err != nil || built[0].Hit != hit {
			t.Fatalf("%s: built %+v, %v, params %+v", dir, built, err, r.cni.ref)
		}
		return built[0].Result.Outputs[componentbits.Output].Digest
	}
	first := key(dir, false)
	if again := key(dir, true); again != first {
		t.Errorf("the same folder: %s, then %s", first, again)
	}
	other := t.TempDir()
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if same := key(other, true); same != first {
		t.Errorf("the same bytes elsewhere: %s, not %s", same, first)
	}
	if err := os.Remove(filepath.Join(other, "antctl.exe")); err != nil {
		t.Fatal(err)
	}
	if changed := key(other, false); changed == first {
		t.Error("other programs have the same digest")
	}
}

// A lock holds the commit and what was resolved; with --frozen the commit is
// what is asked for.
func TestProgramsArePinned(t *testing.T) {
	p := programs{source: fixedSource{}, ref: component.Ref{Source: "git", Version: "v2.7.0", Commit: "0123", Toolchain: "go1.26.8",
		Inputs: map[string]string{"git-tree": "git:0123", ourFlags: "sha256:00"}}}
	resolved, inputs := map[string]string{}, map[string]lock.Input{}
	p.pin(cniPrefix, resolved, inputs)
	if resolved["cni version"] != "v2.7.0" || resolved["cni commit"] != "0123" || len(inputs) != 1 || inputs["cni git-tree"].Digest != "git:0123" {
		t.Errorf("got %v and %v", resolved, inputs)
	}
	pinned := &lock.Lock{Resolved: resolved}
	if got := (Pins{Frozen: true}).commit(cniPrefix, pinned); got != "0123" {
		t.Errorf("frozen: got %q", got)
	}
	if got := (Pins{}).commit(cniPrefix, pinned); got != "" {
		t.Errorf("not frozen: got %q", got)
	}
}

// The stages of programs come before the layers that use them, and cost a
// compile, no machine.
func TestProgramsAreEstimated(t *testing.T) {
	r := standInBuild(t, "antrea")
	r.Spec.CNI = "antrea@main"
	r.cni = programs{project: "antrea", source: fixedSource{}, ref: component.Ref{Version: "v2.7.0", Toolchain: "go1.26.8"}}
	b := newTestBuilder(t, t.TempDir(), plenty)
	x, err := b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(x.Stages, func(l PlanLine) bool { return l.Stage == componentbits.CNI })
	if at < 0 || x.Stages[at].Title != "compiling antrea v2.7.0" || x.Stages[at].Explain.Cost.DiskKept != 256*mib {
		t.Errorf("got %+v", x.Stages)
	}
}
