package kubebits

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

type fakeSource struct{ programs []string }

func (f fakeSource) Resolve(context.Context, report.Sink) (kube.Ref, error) { return kube.Ref{}, nil }
func (f fakeSource) Fetch(_ context.Context, ref kube.Ref, dir, _ string, _ report.Sink) (kube.Bits, error) {
	b := kube.Bits{Ref: ref}
	for _, p := range f.programs {
		if err := os.WriteFile(filepath.Join(dir, p+".exe"), []byte(p), 0o644); err != nil {
			return b, err
		}
		b.Binaries = append(b.Binaries, kube.Binary{Name: p, File: p + ".exe"})
	}
	return b, nil
}

func run(t *testing.T, f fakeSource) (*stage.Work, error) {
	t.Helper()
	dir := t.TempDir()
	w := stage.NewWork(nil, map[string]string{Output: filepath.Join(dir, "bits")}, dir, dir, report.Discard)
	return w, New(f, kube.Ref{Version: "v1.37.2"}).Run(t.Context(), w)
}

func TestRunRecordsTheBits(t *testing.T) {
	w, err := run(t, fakeSource{kube.Programs()})
	if err != nil {
		t.Fatal(err)
	}
	bits, ok := w.Facts()["bits"].(kube.Bits)
	if !ok || len(bits.Binaries) != 4 || bits.Ref.Version != "v1.37.2" {
		t.Errorf("facts %+v", w.Facts())
	}
}

func TestMissingProgramsAreAnError(t *testing.T) {
	if _, err := run(t, fakeSource{kube.Programs()[:3]}); err == nil || !strings.Contains(err.Error(), "3 programs") {
		t.Errorf("error %v", err)
	}
}

func TestTitleSaysWhatHappens(t *testing.T) {
	for toolchain, want := range map[string]string{"": "checking", "go1.26.8": "compiling"} {
		if got := New(nil, kube.Ref{Toolchain: toolchain}).Title(); !strings.HasPrefix(got, want) {
			t.Errorf("title %q, want %s…", got, want)
		}
	}
}
