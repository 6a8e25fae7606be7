package builder

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/builder/hypervisor/qemu"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stages/features"
	"github.com/wbox-dev/wbox/builder/stages/windows"
	"github.com/wbox-dev/wbox/scripts/standin/media"
)

// onStandIn is a Builder over real machines and the stand-in, and what to build.
type onStandIn struct {
	*testing.T
	b     *Builder
	spec  spec.Spec
	ahead time.Duration // of this host's clock
}

func newOnStandIn(t *testing.T) *onStandIn {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a VM")
	}
	if missing := media.Missing(); len(missing) > 0 {
		t.Skipf("programs of the stand-in medium are missing: %v", missing)
	}
	medium, err := media.Cached(t.Context(), media.Options{Release: "2022"})
	if err != nil {
		t.Fatal(err)
	}
	x := &onStandIn{T: t, spec: spec.Spec{K8s: bin(t), K8sVersion: "v1.37.2", ISO: medium, Output: filepath.Join(t.TempDir(), "out")}}
	dial := func(_ context.Context, to netip.AddrPort, access guest.Access, tls bool) (guest.Conn, error) {
		return winrm.Dial(winrm.Config{Addr: to, User: access.User, Password: guest.Secret(access.Password), TLS: tls, PinnedSHA256: access.Pin})
	}
	x.b, err = New(Options{Store: filepath.Join(t.TempDir(), "store"), Driver: qemu.New(qemu.Options{}), Dial: dial,
		Clock: func() time.Time { return time.Now().Add(x.ahead) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.b.store.Release)
	return x
}

func (x *onStandIn) resolve(offline bool) *Resolved {
	x.Helper()
	s := x.spec
	r, err := x.b.Resolve(x.Context(), &s, ResolveOptions{Offline: offline})
	if err != nil {
		x.Fatal(err)
	}
	return r
}

// bake makes one layer and what it lies on, and returns the keys of all of them.
func (x *onStandIn) bake(r *Resolved, layer string) map[string]string {
	x.Helper()
	id, dir, err := x.b.store.NewRun(time.Now())
	if err != nil {
		x.Fatal(err)
	}
	e := &engine.Engine{Store: x.b.store, Sink: report.Discard, RunID: id, Run: dir}
	var upTo []string
	stages := pipeline(r, x.b.host(x.Context(), r))
	for i, s := range stages {
		upTo = append(upTo, s.Name())
		if s.Name() == layer {
			stages = stages[:i+1]
			break
		}
	}
	began := time.Now()
	built, err := e.Build(x.Context(), stages, layer)
	if err != nil {
		x.Fatal(err)
	}
	keys := map[string]string{}
	for _, s := range built {
		keys[s.Stage.Name()] = s.Key
	}
	x.Logf("%s took %.0f s", strings.Join(upTo, ", "), time.Since(began).Seconds())
	return keys
}

func (x *onStandIn) disk(key string) string {
	return filepath.Join(x.b.store.Dir(key), bake.DiskOutput)
}

// TestALicenceRunsOut is a rehearsal with a moved clock, the guest's included:
// an evaluation that was not activated ages out, the next one is installed
// beside it and activated, and the disks on the first one stay as they were.
func TestALicenceRunsOut(t *testing.T) {
	x := newOnStandIn(t)
	began := time.Now()
	r := x.resolve(true)
	first := x.bake(r, features.Name)
	l, err := readLicence(x.b.store, first[windows.Name])
	if err != nil {
		t.Fatal(err)
	}
	if !l.Evaluation || l.Activated || l.Activation != "not tried: --offline" || l.Doubt != "" || l.Guest.Status != 2 ||
		l.Installed.Before(began.Add(-time.Second)) || !l.GraceEnds.After(began.Add(9*day)) {
		t.Errorf("the first one's licence: %+v, %+v", l, l.Guest)
	}
	sum, _, err := cas.DigestFile(t.Context(), x.disk(first[windows.Name]))
	if err != nil {
		t.Fatal(err)
	}

	x.ahead = 8 * day
	r = x.resolve(false)
	e, err := x.b.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w := explainedStage(t, e, windows.Name)
	if w.Status != "miss" || !strings.Contains(w.Explain.Reasons[0], "is too old: its activation grace ends") || explainedStage(t, e, features.Name).Status != "miss" {
		t.Errorf("after eight days: %s, %q", w.Status, w.Explain.Reasons)
	}
	second := x.bake(r, windows.Name)
	if second[windows.Name] == first[windows.Name] || second[windows.Name] != w.Key {
		t.Errorf("keys: first %v, planned %s, second %v", first, w.Key, second)
	}
	if l, err = readLicence(x.b.store, second[windows.Name]); err != nil {
		t.Fatal(err)
	}
	// The guest's clock was moved with ours: else there would be a doubt.
	if !l.Activated || l.Activation != "activated" || l.Doubt != "" || l.Guest.Status != 1 || l.Installed.Before(began.Add(8*day)) {
		t.Errorf("the second one's licence: %+v, %+v", l, l.Guest)
	}

	// The first one's layers are as they were.
	if after, _, err := cas.DigestFile(t.Context(), x.disk(first[windows.Name])); err != nil || after != sum {
		t.Errorf("the first one's disk has changed: %v", err)
	}
	if _, ok, err := x.b.store.Lookup(first[features.Name]); !ok || err != nil {
		t.Errorf("the layer on the first one is gone: %v", err)
	}
	out, err := exec.CommandContext(t.Context(), "qemu-img", "info", "--backing-chain", x.disk(first[features.Name])).CombinedOutput()
	if err != nil || !strings.Contains(string(out), first[windows.Name]) {
		t.Errorf("its chain of overlays: %v\n%s", err, out)
	}
	if _, err := os.Stat(x.disk(second[windows.Name])); err != nil {
		t.Error(err)
	}

	for _, c := range []struct {
		ahead time.Duration
		want  string
	}{{0, "hit"}, {9 * day, "hit"}, {8*day + 149*day, "hit"}, {8*day + 151*day, "miss"}} {
		x.ahead = c.ahead
		e, err := x.b.Explain(t.Context(), x.resolve(false))
		if err != nil {
			t.Fatal(err)
		}
		if w := explainedStage(t, e, windows.Name); w.Status != c.want {
			t.Errorf("%v later: %s, want %s (%s)", c.ahead, w.Status, c.want, w.Why)
		}
	}
}
