package componentbits

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

type fakeSource struct{ programs []string }

func (f fakeSource) Resolve(context.Context, report.Sink) (component.Ref, error) {
	return component.Ref{}, nil
}

func (f fakeSource) Fetch(_ context.Context, ref component.Ref, dir, _ string, _ report.Sink) (component.Bits, error) {
	b := component.Bits{Ref: ref}
	for _, p := range f.programs {
		if err := os.WriteFile(filepath.Join(dir, p+".exe"), []byte(p), 0o644); err != nil {
			return b, err
		}
		b.Binaries = append(b.Binaries, gosource.Binary{Name: p, File: p + ".exe"})
	}
	return b, nil
}

func TestRun(t *testing.T) {
	for _, programs := range [][]string{{"antrea-agent", "antrea-cni"}, nil} {
		dir := t.TempDir()
		w := stage.NewWork(nil, map[string]string{Output: filepath.Join(dir, "bits")}, dir, dir, report.Discard)
		err := New(CNI, "antrea", fakeSource{programs}, component.Ref{Version: "v2.7.0"}).Run(t.Context(), w)
		if programs == nil {
			if err == nil {
				t.Error("no programs are no error")
			}
			continue
		}
		bits, ok := w.Facts()["bits"].(component.Bits)
		if err != nil || !ok || len(bits.Binaries) != 2 || bits.Ref.Version != "v2.7.0" {
			t.Errorf("facts %+v, %v", w.Facts(), err)
		}
	}
}

func TestTitleSaysWhatHappens(t *testing.T) {
	for toolchain, want := range map[string]string{"": "checking the programs of calico", "go1.26.8": "compiling calico v3.32.1"} {
		if got := New(CNI, "calico", nil, component.Ref{Version: "v3.32.1", Toolchain: toolchain}).Title(); got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
}

// The project is part of the key: the same tree of a fork means other programs.
func TestFingerprint(t *testing.T) {
	ref := component.Ref{Version: "v1", Inputs: map[string]string{"git-tree": "git:0"}}
	a, b := New(CNI, "calico", nil, ref).Fingerprint(), New(CNI, "antrea", nil, ref).Fingerprint()
	if a.Params == nil || strings.EqualFold(a.Params.(params).Project, b.Params.(params).Project) {
		t.Errorf("got %+v and %+v", a, b)
	}
}
