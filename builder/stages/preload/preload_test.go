package preload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

func image(name, digest, file string) Image { return Image{Name: name, Digest: digest, File: file} }

func writes(digests map[string]string, err error) func(context.Context, *stage.Work, string) (map[string]string, error) {
	return func(_ context.Context, _ *stage.Work, path string) (map[string]string, error) {
		if err == nil {
			err = os.WriteFile(path, []byte("archive"), 0o600)
		}
		return digests, err
	}
}

func run(t *testing.T, s *Stage) (string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	return out, s.Run(t.Context(), stage.NewWork(nil, map[string]string{Output: out}, t.TempDir(), t.TempDir(), report.Discard))
}

func TestRunKeepsWhatIsAsPinned(t *testing.T) {
	out, err := run(t, New([]Archive{
		{[]Image{image("a/b:c", "sha256:1", "b.tar")}, writes(map[string]string{"a/b:c": "sha256:1"}, nil)},
		{[]Image{image("a/d:e", "sha256:2", "d.tar"), image("a/f:g", "sha256:3", "d.tar")}, writes(map[string]string{"a/d:e": "sha256:2", "a/f:g": "sha256:3"}, nil)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"b.tar", "d.tar"} {
		if _, err := os.Stat(filepath.Join(out, f)); err != nil {
			t.Error(err)
		}
	}
}

func TestRunRefusesWhatIsNot(t *testing.T) {
	gone := errors.New("gone")
	for want, a := range map[string]Archive{
		"became \"sha256:9\"": {[]Image{image("a/b:c", "sha256:1", "b.tar")}, writes(map[string]string{"a/b:c": "sha256:9"}, nil)},
		"became \"\"":         {[]Image{image("a/b:c", "sha256:1", "b.tar")}, writes(nil, nil)},
		"a/b:c: gone":         {[]Image{image("a/b:c", "sha256:1", "b.tar")}, writes(nil, gone)},
		"a/d:e became":        {[]Image{image("a/b:c", "sha256:1", "b.tar"), image("a/d:e", "sha256:2", "other.tar")}, writes(map[string]string{"a/b:c": "sha256:1", "a/d:e": "sha256:2"}, nil)},
	} {
		if _, err := run(t, New([]Archive{a})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheKeyIsTheDigests(t *testing.T) {
	one := New([]Archive{{[]Image{image("a/b:c", "sha256:1", "b.tar")}, nil}})
	if got, ok := one.Fingerprint().Params.([]Image); !ok || len(got) != 1 || got[0].Digest != "sha256:1" {
		t.Errorf("got %+v", one.Fingerprint())
	}
	if Images(nil) == nil {
		t.Error("no images are null in JSON")
	}
}
