package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/spec"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	commit  = "0123456789abcdef0123456789abcdef01234567"
)

// resolved returns what two names stand for, one of Kubernetes' by a base.
func resolved(isoDigest string) *Resolved {
	s := &spec.Spec{K8s: "v1.37.2", ISO: "/some where/w.iso"}
	s.Default()
	return &Resolved{Spec: s, ISODigest: isoDigest, Media: iso.Media{Size: 7}, Ref: kube.Ref{Source: "dir", Version: "v1.37.2",
		Inputs: map[string]string{"kubelet.exe": digestA},
		Base:   &kube.Ref{Source: "module", Version: "v1.36.3", Toolchain: "go1.26.0", Inputs: map[string]string{ourFlags: digestB, "git-tree": "git:" + commit, "odd": "text"}}}}
}

func TestLockOfWhatWasResolved(t *testing.T) {
	l := resolved(digestA).lock()
	for name, want := range map[string]string{"iso": digestA, "kubernetes kubelet.exe": digestA, "kubernetes base git-tree": "git:" + commit, "containerd": ""} {
		if got := l.Inputs[name].Digest; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if len(l.Inputs) != 3 || l.Inputs["iso"].Size != 7 || l.Inputs["iso"].Source != "w.iso" {
		t.Errorf("%+v", l.Inputs)
	}
	for name, want := range map[string]string{"kubernetes": "v1.37.2", "kubernetes base": "v1.36.3", "kubernetes base toolchain": "go1.26.0", "kubernetes base odd": "text"} {
		if l.Resolved[name] != want {
			t.Errorf("%s: %q", name, l.Resolved[name])
		}
	}
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Parse(data); err != nil {
		t.Errorf("a lock that can't be read again: %v\n%s", err, data)
	}
}

func TestPin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "wbox.lock")
	frozen := Pins{Path: path, Frozen: true, Refresh: "wbox lock --cni x"}
	r := resolved(digestA)
	if _, err := frozen.read(r.Spec); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "nothing is pinned") {
		t.Errorf("no lock: %v", err)
	}
	if err := r.pin(Pins{Path: path}, nil); err != nil || r.Lock.Exists || r.Lock.Stale() {
		t.Fatalf("%+v, %v", r.Lock, err)
	}
	if err := r.Lock.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, err := frozen.read(r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.pin(frozen, old); err != nil || r.Lock.Stale() || !r.Lock.Exists {
		t.Errorf("%+v, %v", r.Lock, err)
	}
	if err := r.Lock.Write(t.Context()); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("a current lock was written anew (%v)", err)
	}
	err = resolved(digestB).pin(frozen, old)
	if want := "~ iso: " + digestA + " -> " + digestB; fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "with: wbox lock --cni x") {
		t.Errorf("%v", err)
	}
	r.Spec.CNI = "calico"
	if _, err := frozen.read(r.Spec); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "~ cni: none -> calico") {
		t.Errorf("another selection: %v", err)
	}
	if old, err := (Pins{Path: path}).read(r.Spec); old == nil || err != nil {
		t.Errorf("another selection, not frozen: %v", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Lock.Path, r.Lock.Exists = filepath.Join(filepath.Dir(path), "f", "wbox.lock"), false
	if err := r.Lock.Write(t.Context()); fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "--lock FILE") {
		t.Errorf("no folder: %v", err)
	}
}

func TestFewChanges(t *testing.T) {
	var c []lock.Change
	for _, n := range strings.Split("abcdef", "") {
		c = append(c, lock.Change{Name: n, New: "x"})
	}
	if got := few(c); got != "+ a: x, + b: x, + c: x, + d: x, and 2 more" {
		t.Errorf("got %s", got)
	}
}

func TestPinnedRequest(t *testing.T) {
	for _, c := range []struct{ text, source, want string }{
		{"stable", "release", "release/v1.37.2"},
		{"1.37", "release", "release/v1.37.2"},
		{"release/v1.37.2", "release", ""},
		{"ci/latest", "ci", "ci/v1.37.2"},
		{"v1.37.2", "module", ""},
		{" 1.37.2 ", "module", ""},
		{"1.37", "module", "v1.37.2"},
		{"master", "git", commit},
		{"pull/12345", "git", commit},
		{commit, "git", ""},
		{"git:https://me:secret@example.org/k.git@my-branch", "git", "git:https://example.org/k.git@" + commit},
		{"git:https://example.org/k.git", "git", "git:https://example.org/k.git@" + commit},
		{"git:git@example.org:me/k.git", "git", "git:git@example.org:me/k.git@" + commit},
		{"git:git@example.org:me/k.git@main", "git", "git:git@example.org:me/k.git@" + commit},
		{"./bin", "dir", ""},
		{"./k", "checkout", ""},
	} {
		got := pinnedRequest(c.text, kube.Ref{Source: c.source, Version: "v1.37.2", Commit: commit})
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.text, c.source, got, c.want)
		}
	}
	l := &lock.Lock{Resolved: map[string]string{requestKey: "release/v1.37.2"}}
	if got := (Pins{Frozen: true}).request("stable", l); got != "release/v1.37.2" {
		t.Errorf("frozen: %s", got)
	}
	if got := (Pins{}).request("stable", l); got != "stable" {
		t.Errorf("not frozen: %s", got)
	}
}

func TestSource(t *testing.T) {
	for path, want := range map[string]string{"/a b/c.iso": "c.iso", "https://me:pw@example.org/x.iso?key=1": "https://example.org/x.iso"} {
		if got := source(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
