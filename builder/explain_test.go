package builder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/media"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

// standInISO and windowsISO are digests of media that don't exist.
var (
	standInISO = "sha256:" + strings.Repeat("5", 64)
	windowsISO = "sha256:" + strings.Repeat("a", 64)
)

// standInBuild is a build of a stand-in box, as Resolve returns it.
func standInBuild(t testing.TB, cni string) *Resolved {
	t.Helper()
	s := &spec.Spec{K8s: "v1.37.2", CNI: cni, ISO: "x.iso", Output: filepath.Join(t.TempDir(), "out")}
	s.Default()
	return &Resolved{Spec: s, Ref: kube.Ref{Source: "dir", Version: "v1.37.2"}, Minor: 37, ISODigest: standInISO,
		Media:   iso.Media{Path: "x.iso", StandIn: &iso.StandIn{StandIn: true}},
		Edition: iso.Edition{Name: "Windows Server 2022 SERVERDATACENTERCORE", Build: 20348}, memoryMiB: 2048}
}

// host is what a test says this host has.
type host struct {
	storeFree, outFree int64
	oneVolume          bool
	memory             int64
	unknown            bool
}

func newTestBuilder(t *testing.T, store string, h host) *Builder {
	t.Helper()
	b, err := New(Options{Store: store, Capacity: Capacity{
		Disk: func(dir string) (int64, string, error) {
			switch {
			case h.unknown:
				return 0, "", errors.New("unknown")
			case dir == store || h.oneVolume:
				return h.storeFree, "store", nil
			}
			return h.outFree, "out", nil
		},
		Memory: func() (int64, int64, error) {
			if h.unknown {
				return 0, 0, errors.New("unknown")
			}
			return h.memory, 8 * gib, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.store.Release)
	return b
}

var plenty = host{storeFree: 100 * gib, outFree: 100 * gib, memory: 4 * gib}

// warm puts a result for every stage of a build into the store, each of so
// many bytes, made in so many seconds.
func warm(t testing.TB, b *Builder, r *Resolved, size int64, took time.Duration) {
	t.Helper()
	warmAs(t, b, r, size, took, licence.New(time.Now(), time.Now(), licence.Guest{}))
}

// warmAs is warm with a Windows of that licence.
func warmAs(t testing.TB, b *Builder, r *Resolved, size int64, took time.Duration, l licence.Record) {
	t.Helper()
	for range 20 {
		planned, err := (&engine.Engine{Store: b.store, Sink: report.Discard}).Plan(t.Context(), pipeline(r, bake.Host{}))
		if err != nil {
			t.Fatal(err)
		}
		missing := false
		for _, p := range planned {
			if p.Status == engine.Miss && p.Key != "" {
				missing = true
				putStage(t, b.store, p, size, took, l)
			}
		}
		if !missing {
			return
		}
	}
	t.Fatal("the store does not get warm")
}

func putStage(t testing.TB, s *cas.Store, p engine.Planned, size int64, took time.Duration, l licence.Record) {
	t.Helper()
	d, err := s.Begin(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	res := cas.Result{Stage: p.Stage.Name(), Started: time.Now().UTC(), Elapsed: took, Run: "run", Outputs: map[string]cas.OutputResult{}}
	for _, o := range p.Stage.Outputs() {
		path := filepath.Join(d.Dir, o.Name)
		if o.Kind == stage.Tree {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(path, "kubelet.exe")
		}
		out := cas.OutputResult{Kind: string(o.Kind), Size: size}
		if o.Name == windows.LicenceOutput {
			out.Size = putLicence(t, path, l)
		} else if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		} else if err := os.Truncate(path, size); err != nil { // sparse: the size counts, not the content
			t.Fatal(err)
		}
		if o.Deterministic {
			out.Digest = "sha256:" + p.Key
		}
		res.Outputs[o.Name] = out
	}
	if err := d.Commit(p.Doc, res); err != nil {
		t.Fatal(err)
	}
}

// putLicence writes a licence's record and returns its size.
func putLicence(t testing.TB, path string, l licence.Record) int64 {
	t.Helper()
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return int64(len(data))
}

func explainedStage(t *testing.T, x *Explanation, name string) PlanLine {
	t.Helper()
	for _, s := range x.Stages {
		if s.Stage == name {
			return s
		}
	}
	t.Fatalf("no stage %s", name)
	return PlanLine{}
}

func TestExplainColdStore(t *testing.T) {
	b, r := newTestBuilder(t, t.TempDir(), plenty), standInBuild(t, "calico")
	x, err := b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w := explainedStage(t, x, "windows")
	if len(w.Explain.Reasons) != 1 || w.Explain.Reasons[0] != "no result of this stage is in the store" || w.Explain.Cost.TimeMeasured ||
		w.Explain.Cost.DiskKept < mib {
		t.Errorf("windows: %+v", w.Explain)
	}
	if x.Total.TimeMeasured || x.Total.DiskMeasured || x.Total.Seconds != 0 || x.Total.DiskPeak <= x.Total.DiskKept {
		t.Errorf("total %+v", x.Total)
	}
	if x.Memory.Bytes != 2*gib || x.Disk[1].Bytes == 0 {
		t.Errorf("memory %+v, disk %+v", x.Memory, x.Disk)
	}
}

func TestExplainWarmStoreCostsNothing(t *testing.T) {
	b, r := newTestBuilder(t, t.TempDir(), host{}), standInBuild(t, "calico")
	warm(t, b, r, 100*mib, 10*time.Second)
	begin := time.Now()
	x, err := b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if x.Total.DiskPeak != 0 || x.Total.Seconds != 0 || x.Memory.Bytes != 0 {
		t.Errorf("total %+v, memory %+v", x.Total, x.Memory)
	}
	if err := b.Preflight(t.Context(), r); err != nil {
		t.Errorf("a build with nothing to do is refused on a full disk: %v", err)
	}
}

func TestExplainMeasured(t *testing.T) {
	b, r := newTestBuilder(t, t.TempDir(), plenty), standInBuild(t, "none")
	warm(t, b, r, 100*mib, 10*time.Second)
	r.Spec.CNI = "calico"
	x, err := b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	f := explainedStage(t, x, "features")
	if f.Status != "miss" || !strings.Contains(strings.Join(f.Explain.Reasons, "\n"), "features.params.20-install-features.features: + Routing") {
		t.Errorf("features: %+v", f.Explain)
	}
	if c := f.Explain.Cost; c.Seconds != 10 || c.Samples != 1 || c.DiskKept < 100*mib || c.DiskKept > 101*mib || !c.DiskMeasured {
		t.Errorf("features: %+v", c)
	}
	if c := explainedStage(t, x, "cni").Explain.Cost; c.TimeMeasured || c.Samples != 0 {
		t.Errorf("cni was not made here before: %+v", c)
	}
	// features, runtime, cni (unknown), node, generalize one after the other,
	// payload, then box and proof side by side.
	if x.Total.Seconds != 60 || x.Total.TimeMeasured || x.Total.DiskMeasured {
		t.Errorf("total %+v", x.Total)
	}
	if explainedStage(t, x, "windows").Status != "hit" {
		t.Error("windows would run")
	}
}

func TestStandInSaysNothingAboutWindows(t *testing.T) {
	b, r := newTestBuilder(t, t.TempDir(), plenty), standInBuild(t, "none")
	warm(t, b, r, 100*mib, 10*time.Second)
	r.Media.StandIn, r.ISODigest, r.memoryMiB = nil, windowsISO, 4096
	x, err := b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w := explainedStage(t, x, "windows").Explain
	if w.Cost.Samples != 0 || w.Cost.DiskKept < gib {
		t.Errorf("Windows is measured by a stand-in: %+v", w.Cost)
	}
	if len(w.Reasons) != 1 || w.Reasons[0] != "inputs.iso sha256:555555555555 -> sha256:aaaaaaaaaaaa" {
		t.Errorf("reasons %q", w.Reasons)
	}
}

func TestExplainBeforeTheMediumIsThere(t *testing.T) {
	b, r := newTestBuilder(t, t.TempDir(), plenty), standInBuild(t, "calico")
	r.Media, r.ISODigest, r.pending = iso.Media{}, "", &media.Pending{Name: "w2022", Size: 5 * gib}
	x, err := b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w := explainedStage(t, x, "windows")
	if w.Status != "miss" || w.Key != "" || w.Explain.Cost.Download != 5*gib || w.Explain.Cost.DiskKept != 14*gib {
		t.Errorf("windows: %+v %+v", w, w.Explain.Cost)
	}
	if x.Total.Download != 5*gib || explainedStage(t, x, "proof").Key != "" {
		t.Errorf("total %+v", x.Total)
	}
}

func TestPreflight(t *testing.T) {
	for _, c := range []struct {
		name string
		host host
		want []string // parts of the error; none for no error
	}{
		{"plenty", plenty, nil},
		{"unknown", host{unknown: true}, nil},
		{"store full", host{storeFree: gib / 4, outFree: 100 * gib, memory: 4 * gib},
			[]string{"--store ", "this build needs about ", "256 MiB is free", "--store or WBOX_STORE"}},
		{"output folder full", host{storeFree: 100 * gib, outFree: mib, memory: 4 * gib},
			[]string{"-o ", "1.0 MiB is free", "with -o"}},
		{"one file system for both", host{storeFree: 2*gib + 200*mib, oneVolume: true, memory: 4 * gib},
			[]string{"--store ", "of it for the output folder", "2.2 GiB is free"}},
		{"memory short", host{storeFree: 100 * gib, outFree: 100 * gib, memory: gib},
			[]string{"memory 2.0 GiB", "1.0 GiB of this host's 8.0 GiB is free", "--memory"}},
		{"all short", host{storeFree: 1, outFree: 1, memory: gib}, []string{"--store ", "-o ", "--memory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := t.TempDir()
			b := newTestBuilder(t, store, c.host)
			err := b.Preflight(t.Context(), standInBuild(t, "calico"))
			if (err != nil) != (c.want != nil) {
				t.Fatalf("error %v", err)
			}
			if err == nil {
				return
			}
			if fault.ClassOf(err) != fault.Host {
				t.Errorf("class %v", fault.ClassOf(err))
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if _, err := b.Build(t.Context(), standInBuild(t, "calico")); fault.ClassOf(err) != fault.Host {
				t.Errorf("the build was not refused: %v", err)
			}
			if runs, _ := os.ReadDir(filepath.Join(store, "runs")); len(runs) != 0 {
				t.Error("a refused build began a run")
			}
		})
	}
}

func TestMoreMemoryThanThisHostHas(t *testing.T) {
	b, r := newTestBuilder(t, t.TempDir(), plenty), standInBuild(t, "calico")
	r.memoryMiB = 16 << 10
	err := b.Preflight(t.Context(), r)
	if fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "this host has 8.0 GiB in all") {
		t.Errorf("error %v", err)
	}
}

func BenchmarkExplainWarm(b *testing.B) {
	// 2.1 ms, measured on 2 shared cores; the promise for a plan is a second.
	builder, err := New(Options{Store: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(builder.store.Release)
	r := standInBuild(b, "calico")
	warm(b, builder, r, mib, time.Second)
	for b.Loop() {
		if _, err := builder.Explain(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
