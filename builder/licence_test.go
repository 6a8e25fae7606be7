package builder

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

const day = 24 * time.Hour

// rehearsal is a store with a whole evaluation box in it, and a clock to move.
type rehearsal struct {
	*testing.T
	b     *Builder
	began time.Time
	now   time.Time
}

func newRehearsal(t *testing.T) *rehearsal {
	t.Helper()
	c := &rehearsal{T: t, b: newTestBuilder(t, t.TempDir(), plenty), began: time.Now()}
	c.now = c.began
	c.b.opts.Clock = func() time.Time { return c.now }
	return c
}

// resolved is a build of an evaluation, as Resolve returns it now.
func (c *rehearsal) resolved(change ...func(*Resolved)) *Resolved {
	c.Helper()
	r := standInBuild(c, "calico")
	r.Media.StandIn, r.Edition.EditionID, r.ISODigest = nil, "ServerDatacenterEval", windowsISO
	for _, f := range change {
		f(r)
	}
	if err := c.b.resolveLicence(c.Context(), r, false); err != nil {
		c.Fatal(err)
	}
	return r
}

func volume(r *Resolved) { r.Edition.EditionID = "ServerDatacenter" }

// bake puts a whole box into the store, its Windows installed now. status is
// what that says of its licence.
func (c *rehearsal) bake(r *Resolved, status int) {
	c.Helper()
	g := licence.Guest{Evaluation: r.Edition.Evaluation(), Installed: c.now, Now: c.now, Status: status, Activation: "not tried: --offline"}
	warmAs(c, c.b, r, mib, time.Second, licence.New(c.now, c.now, g))
}

// windows is the plan's line of that layer.
func (c *rehearsal) windows(r *Resolved) PlanLine {
	c.Helper()
	lines, err := c.b.Plan(c.Context(), r)
	if err != nil {
		c.Fatal(err)
	}
	for _, l := range lines {
		if l.Stage == windows.Name {
			return l
		}
	}
	c.Fatal("no windows layer")
	return PlanLine{}
}

const (
	unlicensed = 2
	licensed   = 1
)

// keys are those of all stages that have one.
func (c *rehearsal) keys(r *Resolved) map[string]string {
	c.Helper()
	lines, err := c.b.Plan(c.Context(), r)
	if err != nil {
		c.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range lines {
		out[l.Stage] = l.Key + " " + l.Status
	}
	return out
}

func TestAnEvaluationAgesOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		change func(*Resolved)
		after  time.Duration
		aged   string // part of the reason, "" for none
	}{
		{"young", unlicensed, nil, 6 * day, ""},
		{"its grace nearly over", unlicensed, nil, 8 * day, "its activation grace ends "},
		{"its grace over", unlicensed, nil, 11 * day, "its activation grace ended "},
		{"a smaller margin", unlicensed, func(r *Resolved) { r.Spec.LicenceDays = 1 }, 8 * day, ""},
		{"activated", licensed, nil, 140 * day, ""},
		{"activated, a month before its end", licensed, nil, 151 * day, "its evaluation ends "},
		{"activated, a larger margin", licensed, func(r *Resolved) { r.Spec.LicenceDays = 60 }, 140 * day, "in less than 60 days"},
		{"volume", 0, volume, 4000 * day, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRehearsal(t)
			change := c.change
			if change == nil {
				change = func(*Resolved) {}
			}
			first := x.resolved(change)
			x.bake(first, c.status)
			before := x.keys(x.resolved(change))
			if before["windows"] != before["windows"][:64]+" hit" {
				t.Fatalf("the store is not warm: %v", before)
			}
			x.now = x.now.Add(c.after)
			r := x.resolved(change)
			after := x.keys(r)
			if again := x.keys(x.resolved(change)); !maps.Equal(again, after) {
				t.Errorf("two plans differ:\n%v\n%v", after, again)
			}
			if c.aged == "" {
				if !maps.Equal(before, after) || r.Aged() != "" || r.Clock() == nil {
					t.Errorf("aged %q, plan %v, before %v", r.Aged(), after, before)
				}
				return
			}
			if !strings.Contains(r.Aged(), c.aged) || r.Clock() != nil {
				t.Errorf("aged %q, want %q; clock %v", r.Aged(), c.aged, r.Clock())
			}
			for stage, was := range before {
				made := stage != "kube" && stage != "updates"
				if (after[stage] != was) != made {
					t.Errorf("%s: %s, before %s", stage, after[stage], was)
				}
			}
		})
	}
}

func TestAgeIsAReasonInAnExplanation(t *testing.T) {
	x := newRehearsal(t)
	x.bake(x.resolved(), unlicensed)
	x.now = x.now.Add(8 * day)
	r := x.resolved()
	e, err := x.b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w := explainedStage(t, e, "windows")
	want := []string{"the evaluation installed " + licence.Date(x.began) + " is too old: its activation grace ends " + licence.Date(x.began.Add(10*day)) + ", in less than 3 days",
		"windows.params.generation: 1 -> 2"}
	if w.Status != "miss" || !w.Aged || w.Why != want[0] || !slices.Equal(w.Explain.Reasons, want) {
		t.Errorf("%s, %q, %q", w.Status, w.Why, w.Explain.Reasons)
	}
	if f := explainedStage(t, e, "features"); len(f.Explain.Reasons) != 2 || !strings.HasSuffix(f.Explain.Reasons[1], "made anew by windows") {
		t.Errorf("features: %q", f.Explain.Reasons)
	}
}

// The aged Windows stays: disks of other results lie on it.
func TestTheNextGenerationLeavesTheLastAlone(t *testing.T) {
	x := newRehearsal(t)
	first := x.resolved()
	x.bake(first, unlicensed)
	old := x.keys(first)
	x.now = x.now.Add(8 * day)
	second := x.resolved()
	x.bake(second, unlicensed)
	if got := x.resolved(); x.windows(got).Status != "hit" || got.Aged() != "" || got.Clock() == nil {
		t.Errorf("the second generation is not used: %q", got.Aged())
	}
	if again := x.keys(first); !maps.Equal(again, old) {
		t.Errorf("the first generation changed: %v, before %v", again, old)
	}
	// Both too old: the third.
	x.now = x.now.Add(8 * day)
	if third := x.resolved(); third.licenceClock.generation != 3 {
		t.Errorf("generation %d, want the third", third.licenceClock.generation)
	}
	// The first one pruned: numbers are not used again.
	removeKey(t, x.b.store, x.windows(first).Key)
	if third := x.resolved(); third.licenceClock.generation != 3 {
		t.Errorf("generation %d after pruning, want the third", third.licenceClock.generation)
	}
}

func removeKey(t *testing.T, s *cas.Store, key string) {
	t.Helper()
	if key == "" {
		t.Fatal("no key")
	}
	if err := os.RemoveAll(s.Dir(key)); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedGenerationIsMadeAgain(t *testing.T) {
	x := newRehearsal(t)
	first := x.resolved()
	x.bake(first, unlicensed)
	if err := os.Remove(filepath.Join(x.b.store.Dir(x.windows(first).Key), bake.DiskOutput)); err != nil {
		t.Fatal(err)
	}
	if r := x.resolved(); r.licenceClock.generation != 1 || r.Aged() != "" || x.windows(r).Status != "miss" {
		t.Errorf("generation %d, aged %q", r.licenceClock.generation, r.Aged())
	}
}

func TestARecordThatCannotBeReadIsTooOld(t *testing.T) {
	x := newRehearsal(t)
	first := x.resolved()
	x.bake(first, unlicensed)
	path := filepath.Join(x.b.store.Dir(x.windows(first).Key), windows.LicenceOutput)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte{'x'}, len(data)), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := x.resolved(); r.licenceClock.generation != 2 || !strings.Contains(r.Aged(), "reading the licence's record") {
		t.Errorf("generation %d, aged %q", r.licenceClock.generation, r.Aged())
	}
}

// Another medium's Windows says nothing about this one's.
func TestGenerationsAreOfOneWindows(t *testing.T) {
	x := newRehearsal(t)
	x.bake(x.resolved(), unlicensed)
	x.now = x.now.Add(20 * day)
	if r := x.resolved(func(r *Resolved) { r.ISODigest = standInISO }); r.licenceClock.generation != 1 || r.Aged() != "" {
		t.Errorf("generation %d, aged %q", r.licenceClock.generation, r.Aged())
	}
}

func TestWhetherAnEvaluationIsActivated(t *testing.T) {
	b := newTestBuilder(t, t.TempDir(), plenty)
	for _, c := range []struct {
		name    string
		change  func(*Resolved)
		offline bool
		tried   bool
		text    string
	}{
		{"with a network", func(*Resolved) {}, false, true, "evaluation, to be installed: activating it will be tried; without that it ends after 10 days"},
		{"offline", func(*Resolved) {}, true, false, "evaluation, to be installed and not activated (--offline): it ends after 10 days"},
		{"not wanted", func(r *Resolved) { r.Spec.Activate = spec.ActivateNever }, false, false, "evaluation, to be installed and not activated (--activate never): it ends after 10 days"},
		{"volume", volume, false, false, "volume or retail: no clock"},
	} {
		r := standInBuild(t, "none")
		r.Media.StandIn, r.Edition.EditionID = nil, "ServerDatacenterEval"
		c.change(r)
		if err := b.resolveLicence(t.Context(), r, c.offline); err != nil {
			t.Fatal(err)
		}
		if got := r.windowsConfig(); got.Activate != c.tried || r.LicenceText() != c.text {
			t.Errorf("%s: tried %v, %q", c.name, got.Activate, r.LicenceText())
		}
	}
}

// What is not activated today is not installed anew since the network is here
// tomorrow, and a lock holds nothing of it.
func TestActivationIsNoPartOfTheKey(t *testing.T) {
	x := newRehearsal(t)
	first := x.resolved()
	x.bake(first, unlicensed)
	offline := x.resolved()
	if err := x.b.resolveLicence(t.Context(), offline, true); err != nil {
		t.Fatal(err)
	}
	if x.windows(offline).Status != "hit" || x.windows(x.resolved()).Status != "hit" {
		t.Error("--offline makes another key")
	}
	x.now = x.now.Add(8 * day)
	a, err := first.lock().Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := x.resolved().lock().Encode()
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("the lock depends on the age of the store's Windows: %v", err)
	}
}

// An aged layer makes another box, which a version that is published refuses.
func TestAPublishedVersionSaysThatItsWindowsIsTooOld(t *testing.T) {
	x := newRehearsal(t)
	r := x.resolved()
	r.BoxName, r.Version = "local/wbox-ws2022-calico", "1.37.2.0"
	x.bake(r, unlicensed)
	if err := os.MkdirAll(r.Spec.Output, 0o755); err != nil {
		t.Fatal(err)
	}
	b := built(t, r, "box", true)
	if _, err := x.b.Publish(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := x.b.Preflight(t.Context(), r); err != nil {
		t.Fatalf("while it is young: %v", err)
	}
	x.now = x.now.Add(8 * day)
	if err := x.b.resolveLicence(t.Context(), r, false); err != nil {
		t.Fatal(err)
	}
	err := x.b.Preflight(t.Context(), r)
	if fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "its activation grace ends") || !strings.Contains(err.Error(), "--revision") {
		t.Errorf("got %v", err)
	}
}
