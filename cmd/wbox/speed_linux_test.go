package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

// What wbox may cost beside go build itself, in CPU-seconds (user and system).
const (
	warmRatio  = 1.10
	coldRatio  = 1.05
	idleTime   = time.Second
	ownMemory  = 100 << 10 // KiB
	speedPairs = 3
)

// TestSpeed measures wbox kube build on the whole source of Kubernetes beside go
// build of the same programs with the same flags, into a folder where the last
// ones lie (make bench-k8s). WBOX_BENCH_TREE names a checkout that is
// there already; with WBOX_BENCH_COLD both compile once with an empty cache,
// wbox in another folder, which takes 20 CPU-minutes.
func TestSpeed(t *testing.T) {
	version := os.Getenv("WBOX_BENCH_K8S")
	if version == "" {
		t.Skip("compiles a whole Kubernetes: set WBOX_BENCH_K8S to a version")
	}
	b := newSpeed(t, version)
	b.wbox() // fills the cache of the go command and the store
	b.plain()
	idle := b.wbox()
	for range speedPairs - 1 {
		if again := b.wbox(); again.wall < idle.wall {
			idle = again
		}
	}
	t.Logf("nothing changed: %s", idle)
	if idle.wall > idleTime {
		t.Errorf("nothing changed and it took %s, at most %s are allowed", idle.wall, idleTime)
	}
	var ratios []float64
	for i := range speedPairs {
		b.edit(2 * i)
		w := b.wbox()
		b.edit(2*i + 1)
		p := b.plain()
		ratios = append(ratios, w.cpu.Seconds()/p.cpu.Seconds())
		t.Logf("one file changed: wbox %s; go build %s; ratio %.2f", w, p, ratios[i])
		if w.memory > ownMemory {
			t.Errorf("wbox itself took %d KiB of memory, at most %d are allowed", w.memory, ownMemory)
		}
	}
	slices.Sort(ratios)
	if median := ratios[len(ratios)/2]; median > warmRatio {
		t.Errorf("one file changed: %.2f times the CPU-seconds of go build, at most %.2f are allowed", median, warmRatio)
	}
	if os.Getenv("WBOX_BENCH_COLD") == "" {
		return
	}
	w := b.wbox("--verify-reproducible") // what was compiled already is not compiled again but for the comparison
	p := b.plain("GOCACHE="+t.TempDir(), "cold")
	t.Logf("cold: wbox %s; go build %s; ratio %.3f", w, p, w.cpu.Seconds()/p.cpu.Seconds())
	if ratio := w.cpu.Seconds() / p.cpu.Seconds(); ratio > coldRatio {
		t.Errorf("cold: %.3f times the CPU-seconds of go build, at most %.2f are allowed", ratio, coldRatio)
	}
}

// speed is a source tree and where its programs go.
type speed struct {
	t                     *testing.T
	program               string
	tree, bin, out, store string
}

func newSpeed(t *testing.T, version string) *speed {
	t.Helper()
	dir := t.TempDir()
	b := &speed{t: t, program: filepath.Join(dir, "wbox"), tree: os.Getenv("WBOX_BENCH_TREE"), bin: filepath.Join(dir, "bin"), out: filepath.Join(dir, "plain"), store: filepath.Join(dir, "store")}
	if out, err := exec.Command("go", "build", "-o", b.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if b.tree == "" {
		b.tree = filepath.Join(dir, "kubernetes")
		if err := kubetest.RealTree(t.Context(), b.tree, version); err != nil {
			t.Fatal(err)
		}
	}
	b.edit(-1) // a dirty tree keeps its version when it is changed again
	return b
}

// edit changes what pkg/kubelet does.
func (b *speed) edit(n int) {
	b.t.Helper()
	path := filepath.Join(b.tree, "pkg", "kubelet", "kubelet.go")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(data, "\nvar wboxSpeed%d = %d\n", time.Now().UnixNano(), n), 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *speed) wbox(args ...string) used {
	cmd := exec.CommandContext(b.t.Context(), b.program, append([]string{"kube", "build", b.tree, "-o", b.bin}, args...)...)
	cmd.Env = append(os.Environ(), "WBOX_STORE="+b.store)
	return b.run(cmd)
}

// plain is what a developer would type; a word "cold" puts the programs into
// another folder.
func (b *speed) plain(env ...string) used {
	out := b.out
	if i := slices.Index(env, "cold"); i >= 0 {
		out, env = out+"-cold", slices.Delete(env, i, i+1)
	}
	pinned, err := os.ReadFile(filepath.Join(b.tree, ".go-version"))
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags=selinux,notest,grpcnotrace",
		"-ldflags=all=-X 'k8s.io/component-base/version.gitVersion=v1.99.0-dirty' -X 'k8s.io/client-go/pkg/version.gitVersion=v1.99.0-dirty' -s -w",
		"-o", out+"/", "./cmd/kubelet", "./cmd/kube-proxy", "./cmd/kubeadm", "k8s.io/component-base/logs/kube-log-runner")
	cmd.Dir = b.tree
	cmd.Env = append(append(os.Environ(), "GOTOOLCHAIN=go"+strings.TrimSpace(string(pinned)), "GOFLAGS=", "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"), env...)
	return b.run(cmd)
}

// used is what a program and its children took.
type used struct {
	wall, cpu time.Duration
	memory    int // KiB, at its peak, without its children
}

func (u used) String() string {
	return fmt.Sprintf("%.1f s, %.2f CPU-s, %d MiB of its own", u.wall.Seconds(), u.cpu.Seconds(), u.memory>>10)
}

func (b *speed) run(cmd *exec.Cmd) (u used) {
	b.t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-done:
			tick.Stop()
			if err != nil {
				b.t.Fatalf("%v\n%s", err, out.String())
			}
			u.wall, u.cpu = time.Since(begun), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
			return u
		case <-tick.C:
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
				_, _ = fmt.Sscan(after, &u.memory)
			}
		}
	}
}
