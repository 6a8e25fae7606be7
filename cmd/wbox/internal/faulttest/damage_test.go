//go:build linux

package faulttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

// flip changes one bit in the middle of a file and nothing else about it.
func flip(t *testing.T, path string) {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // root may, though it is sealed
	if err != nil {
		if err = os.Chmod(path, 0o644); err == nil {
			f, err = os.OpenFile(path, os.O_RDWR, 0)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, fi.Size()/2); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, fi.Size()/2); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// result returns the path of an output of the only result of a stage.
func (l *lab) result(t *testing.T, w *Wbox, stage, output string) string {
	t.Helper()
	var found []string
	for _, r := range w.Results(t) {
		if r.Stage == stage {
			found = append(found, filepath.Join(w.Store, "results", r.Key, filepath.FromSlash(output)))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d results of %s", len(found), stage)
	}
	return found[0]
}

// flippedBits damages files of a store in which all is baked. wbox cache
// verify finds each; a build that would put it into a box refuses it, with
// what to do, and the one after that makes it anew.
func flippedBits(l *lab) {
	for _, c := range []struct {
		stage, output string
		lost          []string // whose results have to be made again, so that the damaged one is used
		says          string
	}{
		{"kube", "bits/kubelet.exe", []string{"payload", "proof", "libvirt"}, "has changed since it was made"},
		{"libvirt", "libvirt.box", nil, "has changed since it was made"},
		{"windows", "disk", nil, ""},
		{"payload", "disk", nil, ""},
	} {
		l.t.Run(c.stage, func(t *testing.T) {
			l := l.in(t)
			site := l.site("site")
			l.reset(site, false)
			if e := site.Build(t, nil, "--k8s", l.path(newVersion)); e.Code != 0 {
				t.Fatalf("exit code %d:\n%s", e.Code, e.Stderr)
			}
			path := l.result(t, site, c.stage, c.output)
			if c.says != "" { // first a build comes upon it
				for _, stage := range c.lost {
					l.remove(filepath.Dir(l.result(t, site, stage, "result.json")))
				}
				if err := site.Restore(t.Context(), l.published, l.path("undisturbed/out")); err != nil {
					t.Fatal(err)
				}
				flip(t, path)
				e := site.Build(t, nil, "--k8s", l.path(newVersion))
				if e.Code != 1 || !strings.Contains(e.Stderr, c.says) || !strings.Contains(e.Stderr, "run it again") {
					t.Errorf("a build took it: exit code %d\n%s", e.Code, e.Stderr)
				}
				if e := site.Build(t, nil, "--k8s", l.path(newVersion)); e.Code != 0 {
					t.Errorf("the run after it: exit code %d\n%s", e.Code, e.Stderr)
				}
				l.finished(t, site)
			}
			flip(t, path) // then a verification
			e := site.Run(t, nil, "cache", "verify", "--progress", "none")
			if e.Code != 1 || !strings.Contains(e.Stdout, c.stage) || !strings.Contains(e.Stderr, "wbox cache prune") {
				t.Errorf("wbox cache verify: exit code %d\n%s\n%s", e.Code, e.Stdout, e.Stderr)
			}
			if e := site.Run(t, nil, "cache", "prune", "--keep-last", "100", "--progress", "none"); e.Code != 0 {
				t.Errorf("wbox cache prune: exit code %d\n%s", e.Code, e.Stderr)
			}
			site.CheckStore(t)
		})
	}
}

// damagedMedium flips a bit of the medium in the store, and of one that a
// user names and wbox remembers.
func damagedMedium(l *lab) {
	t := l.t
	site := l.site("site")
	medium := l.own("windows.iso")
	if err := isotest.WriteFake(medium, isotest.Editions("2022"), nil); err != nil {
		t.Fatal(err)
	}
	// It had rested: what was written just now is not remembered.
	fi, err := os.Stat(medium)
	if err == nil {
		at := fi.ModTime().Add(-2 * 60 * 60 * 1e9)
		err = os.Chtimes(medium, at, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := site.Run(t, nil, "iso", "add", medium, "--progress", "none"); e.Code != 0 {
		t.Fatalf("wbox iso add: exit code %d\n%s", e.Code, e.Stderr)
	}
	blobs, err := filepath.Glob(filepath.Join(site.Store, "blobs", "sha256", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("blobs: %v, %v", blobs, err)
	}
	build := func() End { return site.Build(t, nil, "--k8s", l.path(newVersion), "--allow-emulation", "--frozen") }
	for _, c := range []struct {
		name, path string
		args       []string
		says       string
	}{
		{"in the store", blobs[0], nil, "--iso " + blobs[0] + ": has changed"},
		{"a user's", medium, []string{"--iso", medium}, "pins something else than what was found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			site.Selection = append([]string{"--cni", "calico", "--disk", "32"}, c.args...)
			if e := site.Run(t, nil, append([]string{"lock", "-o", site.Out, "--k8s", l.path(newVersion)}, site.Selection...)...); e.Code != 0 {
				t.Fatalf("wbox lock: exit code %d\n%s", e.Code, e.Stderr)
			}
			flip(t, c.path)
			if e := build(); e.Code != 3 || !strings.Contains(e.Stderr, c.says) {
				t.Errorf("a build took it: exit code %d\n%s", e.Code, e.Stderr)
			}
		})
	}
	e := site.Run(t, nil, "cache", "verify", "--progress", "none")
	if e.Code != 1 || !strings.Contains(e.Stdout, "1 damaged") {
		t.Errorf("wbox cache verify: exit code %d\n%s\n%s", e.Code, e.Stdout, e.Stderr)
	}
}
