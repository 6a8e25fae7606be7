package cas

import (
	"os"
	"path/filepath"
	"testing"
)

// A folder that lost a file is as damaged as a file that was cut off.
func TestAnEmptiedFolderIsAMiss(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Begin("key")
	if err != nil {
		t.Fatal(err)
	}
	bits := filepath.Join(d.Dir, "bits")
	if err := os.MkdirAll(filepath.Join(bits, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"kubelet.exe", "sub/kube-proxy.exe"} {
		if err := os.WriteFile(filepath.Join(bits, filepath.FromSlash(f)), []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	digest, size, err := DigestTree(t.Context(), bits)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Commit([]byte("{}"), Result{Outputs: map[string]OutputResult{"bits": {Kind: "tree", Digest: digest, Size: size}}}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Lookup("key"); err != nil || !ok {
		t.Fatalf("a whole folder: %v, %v", ok, err)
	}
	if err := os.Remove(filepath.Join(s.Dir("key"), "bits", "sub", "kube-proxy.exe")); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Lookup("key"); err != nil || ok {
		t.Errorf("a folder that lacks a file is a hit (%v)", err)
	}
	if why, found := s.Missing("key"); !found || why == "" {
		t.Errorf("why it is a miss: %q, %v", why, found)
	}
}
