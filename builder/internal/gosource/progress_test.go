package gosource

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/exec"
	"github.com/wbox-dev/wbox/builder/report"
)

// recorder keeps the events of a call.
type recorder struct{ events []report.Event }

func (r *recorder) Emit(e report.Event) { r.events = append(r.events, e) }

func (r *recorder) messages(kind report.Kind) (out []string) {
	for _, e := range r.events {
		if e.Kind == kind {
			out = append(out, e.Message)
		}
	}
	return out
}

func TestWatcher(t *testing.T) {
	rec := &recorder{}
	w := newWatcher(rec, 5, []Program{{Name: "kubelet", Package: "k8s.io/kubernetes/cmd/kubelet", GOOS: Windows}})
	for _, line := range []string{
		"go: downloading example.com/x v1.0.0",
		"internal/abi",
		"k8s.io/kubernetes/pkg/kubelet",
		"k8s.io/kubernetes/cmd/kubelet",
		"# k8s.io/kubernetes/pkg/proxy/winkernel",
		"../../cache/pkg/mod/k8s.io/kubernetes@v1.37.2/pkg/proxy/winkernel/hns.go:12:3: undefined: hcn",
		"../../cache/pkg/mod/k8s.io/kubernetes@v1.37.2/pkg/proxy/winkernel/hns.go:99:1: too many errors",
	} {
		w.line(line)
	}
	if w.done != 3 {
		t.Errorf("counted %d packages", w.done)
	}
	if want := "k8s.io/kubernetes@v1.37.2/pkg/proxy/winkernel/hns.go:12:3: undefined: hcn"; w.firstErr != want || w.firstPkg != "k8s.io/kubernetes/pkg/proxy/winkernel" {
		t.Errorf("got the error %q of %q", w.firstErr, w.firstPkg)
	}
	got := rec.messages(report.StageProgress)
	if len(got) < 2 || got[0] != "compiling internal/abi" || got[len(got)-1] != "linking kubelet.exe" {
		t.Errorf("told %q", got)
	}
	if last := rec.events[len(rec.events)-1]; last.Done != 3 || last.Total != 5 {
		t.Errorf("the last event is %+v", last)
	}
}

func FuzzWatcher(f *testing.F) {
	f.Add("k8s.io/api", "x.go:1:2: no")
	f.Add("# x", `C:\a\pkg\mod\x.go:1: y`)
	f.Fuzz(func(t *testing.T, a, b string) {
		w := newWatcher(report.SinkFunc(func(e report.Event) {
			if e.Done > e.Total {
				t.Errorf("%d of %d", e.Done, e.Total)
			}
		}), 1, nil)
		w.line(a)
		w.line(b)
	})
}

func TestExplain(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	b := &Build{Settings: Settings{Field: "--k8s"}, Ref: Ref{Version: "v1.37.2"}, log: log}
	for output, want := range map[string]struct {
		class fault.Class
		says  string
	}{
		"x\nwrite /tmp/a: no space left on device":          {fault.Host, "disk: is full"},
		"compile: signal: killed":                           {fault.Host, "memory: is short"},
		"verifying x: checksum mismatch":                    {fault.Input, "checksum"},
		"x: reading https://proxy.example/x: 403 Forbidden": {fault.Network, "403 Forbidden"},
		"dial tcp: lookup proxy.example: no such host":      {fault.Network, "no such host"},
		"something else altogether":                         {fault.Failed, "something else"},
	} {
		got := b.explain(t.Context(), &exec.Error{Argv: []string{"go"}, Output: output, Err: errors.New("exit code 1")}, nil)
		if fault.ClassOf(got) != want.class || !strings.Contains(got.Error(), want.says) || !strings.Contains(got.Error(), log.Name()) {
			t.Errorf("%s: got %v (class %d), want %+v", output, got, fault.ClassOf(got), want)
		}
	}
	w := newWatcher(report.Discard, 1, nil)
	w.line("# k8s.io/kubernetes/pkg/x")
	w.line("x.go:1:2: undefined: y")
	if got := b.explain(t.Context(), errors.New("exit code 1"), w); fault.ClassOf(got) != fault.Failed || !strings.Contains(got.Error(), "(package k8s.io/kubernetes/pkg/x): x.go:1:2: undefined: y") {
		t.Errorf("a compiler's error: got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := b.explain(ctx, errors.New("killed"), nil); fault.ClassOf(got) != fault.Interrupted {
		t.Errorf("after Ctrl-C: got %v", got)
	}
}

func TestLineWriter(t *testing.T) {
	var got []string
	w := &lineWriter{line: func(s string) { got = append(got, s) }}
	for _, p := range []string{"a", "b\r\n\nc\nd", "e"} {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	w.flush()
	if strings.Join(got, "|") != "ab|c|de" {
		t.Errorf("got %q", got)
	}
}

func TestBuildGroups(t *testing.T) {
	packages := []string{"a", "b", "c"}
	for _, tt := range []struct {
		free   int64
		known  bool
		groups int
	}{{linkMemory, true, 1}, {linkMemory - 1, true, 3}, {0, false, 1}} {
		got := buildGroups(packages, tt.free, tt.known)
		if len(got) != tt.groups || !slices.Equal(slices.Concat(got...), packages) {
			t.Errorf("%d bytes free (known: %v): got %v", tt.free, tt.known, got)
		}
	}
}
