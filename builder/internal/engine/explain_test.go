package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/stage"
)

// paramsOf are parameters in the shape of a real layer's.
func paramsOf(features ...string) map[string]any {
	return map[string]any{"20-install-features": map[string]any{"features": features, "dism": []string{}}}
}

// explainAfter builds a chain, changes it, and returns the reasons by stage.
func explainAfter(t *testing.T, change func(root string, m map[string]*fakeStage, built []Built)) map[string]Explained {
	t.Helper()
	root := t.TempDir()
	m := chain()
	m["cni"].params = paramsOf("Containers")
	built, err := newEngine(t, root).Build(t.Context(), list(m), "box")
	must(t, err)
	m = chain()
	m["cni"].params = paramsOf("Containers")
	change(root, m, built)
	return explainStages(t, newEngine(t, root), m)
}

func explainStages(t *testing.T, e *Engine, m map[string]*fakeStage) map[string]Explained {
	t.Helper()
	planned, err := e.Plan(t.Context(), list(m))
	must(t, err)
	entries, err := e.Store.Entries()
	must(t, err)
	out := map[string]Explained{}
	for i, x := range e.Explain(planned, entries) {
		out[planned[i].Stage.Name()] = x
	}
	if ran(m) != "" {
		t.Error("explaining ran a stage")
	}
	return out
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(root string, m map[string]*fakeStage, built []Built)
		want   map[string][]string // stage -> reasons, each a prefix
	}{
		{"nothing changed", func(string, map[string]*fakeStage, []Built) {}, map[string][]string{"cni": nil, "box": nil}},
		{"a feature more, one less", func(_ string, m map[string]*fakeStage, _ []Built) {
			m["cni"].params = paramsOf("Routing", "RemoteAccess")
		}, map[string][]string{
			"bits": nil, "windows": nil,
			"cni": {"cni.params.20-install-features.features: - Containers", "cni.params.20-install-features.features: + RemoteAccess",
				"cni.params.20-install-features.features: + Routing"},
			"node": {"inputs.disk key:"},
		}},
		{"another ISO", func(_ string, m map[string]*fakeStage, _ []Built) {
			m["windows"].inputs[0].Digest = "sha256:" + strings.Repeat("b", 64)
		},
			map[string][]string{"windows": {"inputs.iso sha256:1 -> sha256:bbbbbbbbbbbb"}}},
		{"an ISO that is yet to be downloaded", func(_ string, m map[string]*fakeStage, _ []Built) { m["windows"].inputs[0].Digest = "" },
			map[string][]string{"windows": {"inputs.iso: not here yet, its content decides"}, "node": {"inputs.disk: made anew by cni, its content decides"}}},
		{"other binaries", func(_ string, m map[string]*fakeStage, _ []Built) { m["bits"].params = "v2" },
			map[string][]string{"bits": {"bits.params: null -> v2"}, "payload": {"inputs.exe: made anew by bits, its content decides"},
				"box": {"inputs.disk: made anew by payload, its content decides"}}},
		{"a new parameter", func(_ string, m map[string]*fakeStage, _ []Built) {
			p := paramsOf("Containers")
			p["more"] = 7
			m["cni"].params = p
		}, map[string][]string{"cni": {"cni.params.more: + 7"}}},
		{"cut short", func(root string, _ map[string]*fakeStage, built []Built) {
			p := filepath.Join(root, "results", built[2].Key, "disk")
			must(t, os.Chmod(p, 0o644))
			must(t, os.Truncate(p, 0))
		}, map[string][]string{"cni": {"its stored result can't be used: its output disk has 0 bytes instead of 1"},
			"node": {"its stored result can't be used: the result "}}},
		{"emptied store", func(root string, _ map[string]*fakeStage, _ []Built) {
			must(t, os.RemoveAll(filepath.Join(root, "results")))
			must(t, os.MkdirAll(filepath.Join(root, "results"), 0o755))
		}, map[string][]string{"windows": {"no result of this stage is in the store"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := explainAfter(t, c.change)
			for name, want := range c.want {
				same := slices.EqualFunc(got[name].Reasons, want, strings.HasPrefix)
				if !same {
					t.Errorf("%s: %q, want %q", name, got[name].Reasons, want)
				}
			}
		})
	}
}

// TestExplainTakesTheNearestThenTheNewest has three results to compare with.
func TestExplainTakesTheNearestThenTheNewest(t *testing.T) {
	root := t.TempDir()
	keys := map[string]string{}
	for _, v := range []string{"old", "new", "far"} {
		m := chain()
		m["cni"].params = map[string]any{"features": []string{v}, "minor": 1}
		if v == "far" {
			m["cni"].params = map[string]any{"features": []string{"x", "y", "z"}, "minor": 3}
		}
		built, err := newEngine(t, root).Build(t.Context(), list(m), "cni")
		must(t, err)
		keys[v] = built[2].Key
	}
	m := chain()
	m["cni"].params = map[string]any{"features": []string{"now"}, "minor": 1}
	got := explainStages(t, newEngine(t, root), m)["cni"]
	if got.Nearest != keys["new"] || len(got.Reasons) != 2 || got.Made.IsZero() {
		t.Errorf("%+v, want %s", got, keys["new"])
	}
}

func TestExplainNamesTheMakerBehindAnEmptyStage(t *testing.T) {
	got := explainAfter(t, func(_ string, m map[string]*fakeStage, _ []Built) {
		m["cni"].pass = "no CNI"
		m["windows"].params = "v2"
	})["node"].Reasons
	if len(got) != 1 || !strings.HasSuffix(got[0], ", made anew by windows") {
		t.Errorf("%q", got)
	}
}

func TestExplainVolatile(t *testing.T) {
	m := chain()
	m["cni"].always = "asks the network"
	got := explainStages(t, newEngine(t, t.TempDir()), m)["cni"]
	if len(got.Reasons) != 1 || got.Reasons[0] != "it runs every time: asks the network" {
		t.Errorf("%q", got.Reasons)
	}
}

func TestDiffOfFilesVersionsAndOrder(t *testing.T) {
	doc := func(fp stage.Fingerprint, inputs map[string]string) []byte {
		_, b, err := makeKey(keyDoc{Schema: 1, Stage: "s", Fingerprint: fp, Inputs: inputs})
		must(t, err)
		return b
	}
	was := doc(stage.Fingerprint{Version: 1, Files: map[string]string{"a.ps1": "sha256:1", "b.ps1": "sha256:2"},
		Params: map[string]any{"list": []int{1, 2, 2}, "long": strings.Repeat("x", 200)}}, map[string]string{"old": "sha256:5"})
	is := doc(stage.Fingerprint{Version: 2, Files: map[string]string{"a.ps1": "sha256:9", "c.ps1": "sha256:2"},
		Params: map[string]any{"list": []int{2, 1, 2}, "long": "y"}}, map[string]string{"new": "sha256:6"})
	got, err := differ{stage: &fakeStage{name: "s"}}.diff(was, is)
	must(t, err)
	want := []string{"s.version: 1 -> 2, wbox makes it in another way", "inputs.new is new: sha256:6", "inputs.old is gone: sha256:5",
		"a.ps1 changed", "b.ps1 is gone", "c.ps1 is new", "s.params.list: in another order",
		"s.params.long: " + strings.Repeat("x", 79) + "… -> y"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if k, err := KeyOf(was); err != nil || len(k) != 64 {
		t.Errorf("key %q %v", k, err)
	}
}

func TestKeyOfIsTheKey(t *testing.T) {
	root := t.TempDir()
	_, err := newEngine(t, root).Build(t.Context(), list(chain()), "box")
	must(t, err)
	s, err := cas.Open(root)
	must(t, err)
	v, err := s.Verify(t.Context(), KeyOf, nil)
	must(t, err)
	if v.Results != 6 {
		t.Errorf("looked at %d", v.Results)
	}
	for _, d := range v.Damage { // the fake disks are no qcow2 images, which is found once the keys are right
		if !strings.Contains(d.What, "not a qcow2 image") {
			t.Errorf("%+v", d)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"stage":"s","schema":1,"fingerprint":{"version":1,"params":{"a":[1,"b"]}},"inputs":{"d":"key:1"}}`), []byte(`{"stage":"s","fingerprint":{"params":[]}}`))
	f.Add([]byte(`{"stage":"s","fingerprint":{"params":{"a":{"b":null}}}}`), []byte(`{"stage":"s","fingerprint":{"params":{"a":{"b":1e99}}}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d := differ{stage: &fakeStage{name: "s"}}
		lines, err := d.diff(a, b)
		if err != nil {
			return
		}
		for _, l := range lines {
			if strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("a control character in %q", l)
			}
		}
		same, err := d.diff(a, a)
		if err != nil || len(same) != 0 && !strings.Contains(string(a), unknownInput) {
			t.Errorf("a key differs from itself: %q %v", same, err)
		}
	})
}
