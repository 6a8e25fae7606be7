package cas

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// forge replaces a remembered digest, so that a use of it can be told from
// hashing again. The file counts as one that had rested.
func forge(t *testing.T, s *Store, path, digest string) {
	t.Helper()
	k, err := identify(path)
	if err != nil {
		t.Fatal(err)
	}
	k.Digest, k.Hashed = digest, time.Now().Add(time.Hour)
	if err := s.remember(t.Context(), k); err != nil {
		t.Fatal(err)
	}
}

const forged = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

func TestDigestKnown(t *testing.T) {
	s := open(t)
	p := userFile(t, []byte("content"))
	want, _, err := DigestFile(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, want string) {
		t.Helper()
		got, _, err := s.DigestKnown(t.Context(), p)
		if err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", what, got, err, want)
		}
	}
	check("first", want)
	if s.IsKnown(p + ".missing") {
		t.Error("a missing file is known")
	}
	forge(t, s, p, forged)
	if !s.IsKnown(p) {
		t.Error("what is remembered is not known")
	}
	check("remembered", forged)

	for what, change := range map[string]func() error{
		"written to, same size": func() error {
			at := time.Now().Add(-time.Minute)
			if err := os.WriteFile(p, []byte("CONTENT"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(p, at, at)
		},
		"longer":  func() error { return os.WriteFile(p, []byte("content and more"), 0o644) },
		"touched": func() error { at := time.Now().Add(time.Nanosecond); return os.Chtimes(p, at, at) },
		"another file of the same times": func() error {
			fi, err := os.Stat(p)
			if err != nil {
				return err
			}
			if err := os.Rename(p, p+".old"); err != nil {
				return err
			}
			if err := os.WriteFile(p, []byte("another"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(p, fi.ModTime(), fi.ModTime())
		},
	} {
		forge(t, s, p, forged)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now, _, err := DigestFile(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		check(what, now)
	}
	if _, _, err := s.DigestKnown(t.Context(), p+".missing"); err == nil {
		t.Error("a missing file has a digest")
	}
	if _, _, err := s.DigestKnown(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder has a digest")
	}
}

// TestRest is about the clocks of file systems.
func TestRest(t *testing.T) {
	whole, fine := int64(1_700_000_000_000_000_000), int64(1_700_000_000_004_000_000)
	for _, c := range []struct {
		k     Known
		after time.Duration
		want  bool
	}{
		{Known{MTime: whole}, 1900 * time.Millisecond, false},
		{Known{MTime: whole}, 2 * time.Second, true},
		{Known{MTime: fine}, 99 * time.Millisecond, false},
		{Known{MTime: fine}, 100 * time.Millisecond, true},
		{Known{MTime: fine, CTime: fine}, -time.Hour, false},
		{Known{MTime: whole, CTime: fine}, time.Second, true}, // its time was set, as archives do
	} {
		changed := c.k.MTime
		if c.k.CTime != 0 {
			changed = c.k.CTime
		}
		c.k.Digest, c.k.Hashed = forged, time.Unix(0, changed).Add(c.after)
		if c.k.trusted() != c.want {
			t.Errorf("%+v, hashed %s after it was changed: want %v", c.k, c.after, c.want)
		}
	}
}

func TestDigestKnownSurvivesGarbage(t *testing.T) {
	s := open(t)
	p := userFile(t, []byte("content"))
	want, _, err := DigestFile(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	forge(t, s, p, forged)
	entry := s.knownPath(p)
	for _, garbage := range []string{"", "{", "[]", `{"path":"` + p + `"}`, "null"} {
		if err := os.WriteFile(entry, []byte(garbage), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.DigestKnown(t.Context(), p); got != want || err != nil {
			t.Errorf("%q: %s %v", garbage, got, err)
		}
	}
	forge(t, s, p, "sha256:short")
	if got, _, err := s.DigestKnown(t.Context(), p); got != want || err != nil {
		t.Errorf("a digest that is none was used: %s %v", got, err)
	}
}

func TestVerifyKnown(t *testing.T) {
	s := open(t)
	good, changed, gone, wrong := userFile(t, []byte("1")), userFile(t, []byte("2")), userFile(t, []byte("3")), userFile(t, []byte("4"))
	digest, _, err := DigestFile(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	forge(t, s, good, digest)
	for _, p := range []string{changed, gone, wrong} {
		forge(t, s, p, forged)
	}
	if err := os.WriteFile(changed, []byte("22"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	got, err := s.VerifyKnown(t.Context())
	if err != nil || len(got) != 1 || got[0].Path != wrong {
		t.Errorf("%+v %v", got, err)
	}
	entries, err := os.ReadDir(s.knownDir())
	if err != nil || len(entries) != 1 || filepath.Join(s.knownDir(), entries[0].Name()) != s.knownPath(good) {
		t.Errorf("remembered: %v %v", entries, err)
	}
}

func FuzzKnown(f *testing.F) {
	f.Add([]byte(`{"path":"/a","size":1,"mtimeNs":5,"digest":"` + forged + `","hashed":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"mtimeNs":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var k Known
		if json.Unmarshal(data, &k) == nil && k.trusted() && !digestLike(k.Digest) {
			t.Fatalf("%+v is trusted", k)
		}
	})
}

// BenchmarkDigestKnown is an ISO of 8 GB, as large as Microsoft's largest, that
// was hashed before.
func BenchmarkDigestKnown(b *testing.B) {
	s, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	p := filepath.Join(b.TempDir(), "big.iso")
	if err := os.WriteFile(p, nil, 0o644); err != nil {
		b.Fatal(err)
	}
	if err := os.Truncate(p, 8_152_356_864); err != nil {
		b.Fatal(err)
	}
	k, err := identify(p)
	if err != nil {
		b.Fatal(err)
	}
	k.Digest, k.Hashed = forged, time.Now().Add(time.Hour)
	if err := s.remember(b.Context(), k); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if d, _, err := s.DigestKnown(b.Context(), p); err != nil || d != forged {
			b.Fatal(d, err)
		}
	}
}
