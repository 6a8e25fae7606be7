package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// qcow2 is the head of an image with a backing file, or without one.
func qcow2(backing string) []byte {
	b := make([]byte, 512)
	copy(b, "QFI\xfb")
	binary.BigEndian.PutUint32(b[4:], 3)
	if backing != "" {
		binary.BigEndian.PutUint64(b[8:], 256)
		binary.BigEndian.PutUint32(b[16:], uint32(len(backing)))
		copy(b[256:], backing)
	}
	return b
}

// putFiles puts a result with disks and deterministic files.
func putFiles(t *testing.T, s *Store, key string, parents []string, disk []byte, file string) {
	t.Helper()
	d, err := s.Begin(key)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	r := Result{Stage: "made", Parents: parents, Outputs: map[string]OutputResult{"disk": {Kind: "disk", Size: int64(len(disk))}}}
	if err := os.WriteFile(filepath.Join(d.Dir, "disk"), disk, 0o644); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(d.Dir, "file")
	if err := os.WriteFile(p, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	o := OutputResult{Kind: "file"}
	if o.Digest, o.Size, err = DigestFile(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r.Outputs["file"] = o
	if err := d.Commit([]byte(key), r); err != nil {
		t.Fatal(err)
	}
}

func sameKey(doc []byte) (string, error) { return string(doc), nil }

func TestVerifyFindsDamage(t *testing.T) {
	write := func(path, content string) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			if err := os.WriteFile(filepath.Join(s.Root(), "results", filepath.FromSlash(path)), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		damage func(*testing.T, *Store)
		want   []string // key and what of each damage
	}{
		{"none", func(*testing.T, *Store) {}, nil},
		{"a bit flipped", write("child/file", "FIle"), []string{"child its output file does not have the content"}},
		{"cut short", write("child/file", "f"), []string{"child its output file has 1 bytes instead of 4"}},
		{"result garbled", write("child/result.json", "{"), []string{"child result.json is garbled"}},
		{"key of another", write("child/key.json", "base"), []string{"child key.json does not have this key"}},
		{"layered on a stranger", write("child/disk", string(qcow2("../other/disk"))), []string{"child its output disk is layered on a disk that is none"}},
		{"layered on nothing", write("child/disk", string(qcow2("../nobody/disk"))), []string{"child its output disk is layered on a disk that is gone"}},
		{"no image", write("child/disk", strings.Repeat("x", 512)), []string{"child its output disk is damaged"}},
		{"parent gone", func(t *testing.T, s *Store) {
			if err := os.RemoveAll(s.Dir("base")); err != nil {
				t.Fatal(err)
			}
		}, []string{"child the result base, on whose disk it is layered, is gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			putFiles(t, s, "base", nil, qcow2(""), "file")
			putFiles(t, s, "child", []string{"base"}, qcow2("../base/disk"), "file")
			putFiles(t, s, "other", nil, qcow2(""), "file")
			c.damage(t, s)
			n := 0
			v, err := s.Verify(t.Context(), sameKey, func(Entry) { n++ })
			if err != nil {
				t.Fatal(err)
			}
			if n != v.Results || n < 2 || v.Bytes < 4 {
				t.Errorf("looked at %d, report %+v", n, v)
			}
			if len(v.Damage) != len(c.want) {
				t.Fatalf("damage %+v, want %v", v.Damage, c.want)
			}
			for i, d := range v.Damage {
				if got := d.Key + " " + d.What; !strings.HasPrefix(got, c.want[i]) {
					t.Errorf("got %q, want %q", got, c.want[i])
				}
				if _, ok, err := s.Lookup(d.Key); ok || err != nil {
					t.Errorf("a damaged result is taken: %v %v", ok, err)
				}
			}
			if _, ok, _ := s.Lookup("other"); !ok {
				t.Error("a good result is not taken")
			}
		})
	}
}

func TestDamagedResultIsReplaced(t *testing.T) {
	s := open(t)
	putFiles(t, s, "k", nil, qcow2(""), "file")
	if err := os.WriteFile(filepath.Join(s.Dir("k"), "file"), []byte("fil3"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := s.Lookup("k"); !ok {
		t.Fatal("lookups don't hash, so it is still taken")
	}
	if v, err := s.Verify(t.Context(), nil, nil); err != nil || len(v.Damage) != 1 {
		t.Fatal(v, err)
	}
	putFiles(t, s, "k", nil, qcow2(""), "file")
	if _, ok, _ := s.Lookup("k"); !ok {
		t.Error("made again, and not taken")
	}
}

func TestVerifyLeavesOutWhatIsBusy(t *testing.T) {
	s := open(t)
	putFiles(t, s, "k", nil, qcow2(""), "file")
	l, err := s.TryLock("k")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	v, err := s.Verify(t.Context(), nil, nil)
	if err != nil || v.Results != 0 || len(v.Busy) != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestInterruptedVerifyMarksNothing(t *testing.T) {
	s := open(t)
	putFiles(t, s, "k", nil, qcow2(""), "file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Verify(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, ok, _ := s.Lookup("k"); !ok {
		t.Error("an interrupted verification damaged a result")
	}
}

func FuzzBackingFile(f *testing.F) {
	f.Add(qcow2(""))
	f.Add(qcow2("../base/disk"))
	f.Add(qcow2("x")[:100])
	f.Add([]byte("QFI\xfb"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, err := backingFile(bytes.NewReader(b))
		if err == nil && len(name) > 1023 || err != nil && name != "" {
			t.Errorf("%q %v", name, err)
		}
	})
}
