package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cacheOf is a store with all results of a build.
func cacheOf(t *testing.T) (*Cache, *Builder) {
	t.Helper()
	b := newTestBuilder(t, t.TempDir(), plenty)
	warm(t, b, standInBuild(t, "calico"), mib, time.Minute)
	c, err := OpenCache(b.store.Root(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, b
}

func TestCacheListSaysWhatResultsAreFor(t *testing.T) {
	c, b := cacheOf(t)
	other := standInBuild(t, "flannel")
	warm(t, b, other, mib, time.Minute)
	l, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	var order []string
	for _, r := range l.Results {
		got[r.Stage] = append(got[r.Stage], strings.Join(r.For, ", "))
		if len(order) == 0 || order[len(order)-1] != r.Stage {
			order = append(order, r.Stage)
		}
	}
	const both = "v1.37.2 calico (stand-in), v1.37.2 flannel (stand-in)"
	if got["windows"][0] != both || got["kube"][0] != both {
		t.Errorf("windows and kube are for %q, %q", got["windows"], got["kube"])
	}
	if len(got["proof"]) != 2 || got["proof"][0] != "v1.37.2 flannel (stand-in)" || got["libvirt"][1] != "v1.37.2 calico (stand-in)" {
		t.Errorf("proof %q, libvirt %q", got["proof"], got["libvirt"])
	}
	if s := strings.Join(order, " "); s != "kube windows features runtime cni node generalize payload proof libvirt" {
		t.Errorf("order %s", s)
	}
	if l.Size < 17*mib || l.Free == 0 {
		t.Errorf("size %d, free %d", l.Size, l.Free)
	}
}

func TestCachePruneAfterABuild(t *testing.T) {
	c, b := cacheOf(t)
	if p, err := c.Prune(t.Context(), PruneOptions{OlderThan: time.Hour, MaxSize: -1}); err != nil || len(p.Removed) != 0 {
		t.Errorf("removed what was just made: %+v %v", p, err)
	}
	dry, err := c.Prune(t.Context(), PruneOptions{MaxSize: 0, DryRun: true})
	if err != nil || len(dry.Removed) != 10 || dry.Left != 0 || !dry.DryRun {
		t.Errorf("%+v %v", dry, err)
	}
	wet, err := c.Prune(t.Context(), PruneOptions{MaxSize: 0})
	if err != nil || wet.Freed != dry.Freed {
		t.Errorf("freed %d, said %d: %v", wet.Freed, dry.Freed, err)
	}
	if left, err := b.store.Entries(); err != nil || len(left) != 0 {
		t.Errorf("left %v %v", left, err)
	}
}

func TestCacheVerify(t *testing.T) {
	c, b := cacheOf(t)
	l, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	user := filepath.Join(t.TempDir(), "user.iso")
	if err := os.WriteFile(user, []byte("iso"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.AddBlob(t.Context(), user, nil); err != nil {
		t.Fatal(err)
	}
	v, err := c.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The fake results have digests that are none, so what is deterministic is
	// found damaged.
	found := map[string]string{}
	for _, d := range v.Damage {
		found[d.What] = d.Why
	}
	if v.Results != len(l.Results) || !strings.Contains(found["kube"], "does not have the content") || !strings.Contains(found["libvirt"], "does not have the content") {
		t.Errorf("%+v", v)
	}
	blobs, err := b.store.Blobs()
	if err != nil || len(blobs) != 1 {
		t.Fatal(blobs, err)
	}
	if _, bad := found["blob"]; bad {
		t.Error("a good blob is found damaged")
	}
}
