package faulttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/lock"
)

// Sum returns the SHA-256 of a file.
func Sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// offer is what a catalog offers.
type offer struct{ Version, URL, Checksum string }

func offers(path string) ([]offer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c struct {
		Versions []struct {
			Version   string
			Providers []struct{ URL, Checksum string }
		}
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	var out []offer
	for _, v := range c.Versions {
		for _, p := range v.Providers {
			out = append(out, offer{v.Version, p.URL, p.Checksum})
		}
	}
	return out, nil
}

// CheckOutput looks at all that has a final name in the output folder: each
// box is whole and one that the store has made, the catalog offers only what
// is there, and each manifest is that of its box. It returns the versions that
// the catalog offers.
func (w *Wbox) CheckOutput(t testing.TB) (versions []string) {
	t.Helper()
	entries, err := os.ReadDir(w.Out)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(w.Out, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), ".box"):
			if _, err := box.Check(t.Context(), path); err != nil {
				t.Errorf("a broken box has a final name: %v", err)
			}
			if sums[e.Name()], err = Sum(path); err != nil {
				t.Error(err)
			}
		case e.Name() == lock.FileName:
			if l, err := lock.Read(path); err != nil || l == nil {
				t.Errorf("a broken lock has a final name: %v", err)
			}
		}
	}
	if foreign, err := box.Foreign(w.Out); err != nil || len(foreign) > 0 {
		t.Errorf("the output folder holds %v, %v", foreign, err)
	}
	list, err := offers(filepath.Join(w.Out, box.CatalogFile))
	if err != nil && !os.IsNotExist(err) {
		t.Errorf("a broken catalog has a final name: %v", err)
	}
	for _, o := range list {
		u, err := url.Parse(o.URL)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := sums[filepath.Base(u.Path)]; got != o.Checksum || filepath.Dir(u.Path) != w.Out {
			t.Errorf("the catalog offers %+v, the file has %s", o, got)
		}
		versions = append(versions, o.Version)
	}
	w.checkManifests(t, sums)
	made := w.madeBoxes(t)
	for name, sum := range sums {
		if !made[sum] {
			t.Errorf("%s has a content that no result has", name)
		}
	}
	return versions
}

func (w *Wbox) checkManifests(t testing.TB, sums map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.Out, "*-manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		var m builder.Manifest
		data, err := os.ReadFile(p)
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			t.Errorf("a broken manifest has a final name: %v", err)
			continue
		}
		if got := sums[strings.TrimSuffix(filepath.Base(p), "-manifest.json")+"-libvirt.box"]; got == "" || got != m.SHA256 {
			t.Errorf("%s is for a box with %s, the box has %q", filepath.Base(p), m.SHA256, got)
		}
	}
}

// madeBoxes are the digests of the boxes that were ever whole in the store.
func (w *Wbox) madeBoxes(t testing.TB) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for sum := range w.boxes {
		out[sum] = true
	}
	for _, r := range w.Results(t) {
		if s := r.Outputs["libvirt.box"].Digest; s != "" {
			out[strings.TrimPrefix(s, "sha256:")] = true
		}
	}
	return out
}

// Result is what the store says of a result.
type Result struct {
	Key, Stage, Run string
	Outputs         map[string]struct{ Digest string }
}

// Results reads all results of the store.
func (w *Wbox) Results(t testing.TB) []Result {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.Store, "results", "*", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Result
	for _, p := range paths {
		if strings.HasPrefix(filepath.Base(filepath.Dir(p)), ".") {
			continue
		}
		var r Result
		data, err := os.ReadFile(p)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Errorf("a broken result has a final name: %v", err)
			continue
		}
		out = append(out, r)
	}
	return out
}

// CheckStore verifies every result of the store and returns how many there are.
func (w *Wbox) CheckStore(t testing.TB) int {
	t.Helper()
	if _, err := os.Stat(w.Store); os.IsNotExist(err) {
		return 0
	}
	c, err := builder.OpenCache(w.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Verify(t.Context())
	if err != nil || len(r.Damage) > 0 || len(r.Busy) > 0 {
		t.Errorf("the store is not sound: %+v, %v", r, err)
		return 0
	}
	return r.Results
}

// unfinished begins the names of files and folders that are being made.
var unfinished = []string{".tmp-", ".wbox-tmp-", ".wbox-probe-", ".scratch-"}

// Leftovers lists what unfinished files are in the store and the output folder,
// and all that is in the folder for temporary files.
func (w *Wbox) Leftovers(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, root := range []string{w.Store, w.Out, w.Tmp} {
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			left := root == w.Tmp && p != root
			for _, u := range unfinished {
				left = left || strings.HasPrefix(d.Name(), u)
			}
			if filepath.Dir(filepath.Dir(p)) == w.Store && strings.HasPrefix(d.Name(), ".wbox-tmp-") {
				left = false // a small file, which goes after an hour
			}
			if left {
				out = append(out, p)
				if d.IsDir() {
					return fs.SkipDir
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Contents returns the digests of all files of all results but those that tell
// of a run and secrets, by stage and name.
func (w *Wbox) Contents(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range w.Results(t) {
		dir := filepath.Join(w.Store, "results", r.Key)
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name() == "result.json" || d.Name() == "access" {
				return err
			}
			sum, err := Sum(p)
			rel, _ := filepath.Rel(dir, p)
			out[fmt.Sprintf("%s %s %s", r.Stage, r.Key[:12], rel)] = sum
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
