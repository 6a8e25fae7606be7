package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/faulttest"
)

// faults kills and interrupts builds that run real machines, from a bake that
// is done: every time a copy of its store, in which a new patch release of
// Kubernetes needs one boot and a new minor three. WBOX_TEST_CHAOS says how
// often, instead of three times each; WBOX_TEST_SEED plays moments again.
func faults(t *testing.T, b *bake, base builder.Published) {
	f := &faulty{bake: b, t: t, seconds: map[string]float64{}, seen: map[string]facts{}, n: 3}
	if v := os.Getenv("WBOX_TEST_CHAOS"); v != "" {
		f.n, _ = strconv.Atoi(v)
	}
	seed := uint64(time.Now().UnixNano()) % 1e6
	if v := os.Getenv("WBOX_TEST_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("seed %d", seed)
	f.random = rand.New(rand.NewPCG(seed, 0))
	for _, s := range b.manifest(base).Stages {
		f.seconds[s.Stage] = s.Seconds
	}
	f.program = filepath.Join(b.dir, "wbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", f.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	patch, minor := b.exes("v1.36.4", "patch"), b.exes("v1.35.7", "minor")
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT}
	for struck := [2]int{}; min(struck[0], struck[1]) < f.n && !t.Failed(); {
		i := 0
		if struck[1] < struck[0] {
			i = 1
		}
		k8s, blows := []string{minor, patch}[i], min(3, f.n-struck[i])
		if f.n > 3 { // chaos
			k8s, blows = []string{minor, patch}[f.random.IntN(2)], min(1+f.random.IntN(3), blows)
		}
		struck[i] += f.chain(signals[i], k8s, blows)
	}
}

// faulty is a bake to which things happen.
type faulty struct {
	*bake
	t       *testing.T
	program string
	random  *rand.Rand
	seconds map[string]float64 // that each stage takes
	seen    map[string]facts   // by --k8s
	n       int
}

// facts are what must be the same for the same inputs.
type facts struct{ Keys, Kube, Lock string }

// chain strikes builds one after the other, lets the next one complete, and
// returns how many were struck.
func (f *faulty) chain(s syscall.Signal, k8s string, blows int) (struck int) {
	dir, err := os.MkdirTemp(f.dir, "faults-")
	if err != nil {
		f.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w := &faulttest.Wbox{Program: []string{f.program}, Store: filepath.Join(dir, "store"), Out: filepath.Join(dir, "out put"), Tmp: filepath.Join(dir, "tmp"),
		Selection: append([]string{"--iso", f.iso}, f.selection...)}
	if err := os.Mkdir(w.Tmp, 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := faulttest.CopyTree(f.t.Context(), f.store, w.Store); err != nil {
		f.t.Fatal(err)
	}
	if err := w.Restore(f.t.Context(), f.out, f.out); err != nil {
		f.t.Fatal(err)
	}
	for range blows {
		b := faulttest.Blow{Signals: []syscall.Signal{s}, After: 300*time.Millisecond + time.Duration(f.random.Float64()*f.left(w, k8s)*float64(time.Second))}
		if s == syscall.SIGINT && f.random.IntN(4) == 0 {
			b.Signals = append(b.Signals, s) // at once
		}
		made := w.Made(f.t)
		e := w.Build(f.t, &b, "--k8s", k8s)
		f.t.Logf("%v with %s: in %q, exit code %d", b, filepath.Base(k8s), e.Phase, e.Code)
		f.look(w, s, e)
		w.CheckKept(f.t, made)
		if f.t.Failed() {
			f.t.Fatalf("after a build that said:\n%s", e.Stderr)
		}
		if e.Code == 0 {
			break // it was quicker
		}
		struck++
	}
	f.complete(w, k8s)
	return struck
}

// look checks what a blow has left.
func (f *faulty) look(w *faulttest.Wbox, s syscall.Signal, e faulttest.End) {
	f.t.Helper()
	if left := w.Quiet(5 * time.Second); len(left) > 0 {
		f.t.Errorf("still running after 5 s: %v", left)
	}
	switch {
	case e.Code == 0, e.Signal == s: // it was quicker; killed, by the second Ctrl-C maybe
	case s == syscall.SIGINT && e.Code == 130:
		if left := w.Leftovers(f.t); len(left) > 0 {
			f.t.Errorf("left behind: %v", left)
		}
	default:
		f.t.Errorf("exit code %d, %v", e.Code, e.Signal)
	}
	if !slices.Contains(w.CheckOutput(f.t), "1.36.3.0") {
		f.t.Error("the box that was published before is gone")
	}
	w.CheckStore(f.t)
}

// complete runs a build that nothing happens to.
func (f *faulty) complete(w *faulttest.Wbox, k8s string) {
	f.t.Helper()
	made := w.Made(f.t)
	e := w.Build(f.t, nil, "--k8s", k8s, "--format", "json")
	var p builder.Published
	if err := json.Unmarshal([]byte(e.Stdout), &p); e.Code != 0 || err != nil {
		f.t.Fatalf("the run after it: exit code %d, %v\n%s", e.Code, err, e.Stderr)
	}
	f.look(w, 0, e)
	w.CheckKept(f.t, made)
	left := slices.DeleteFunc(w.Leftovers(f.t), func(path string) bool { // of the run that was killed; it goes after a day
		return filepath.Dir(path) == w.Tmp && strings.HasPrefix(filepath.Base(path), "wbox-trial-")
	})
	if len(left) > 0 {
		f.t.Errorf("left behind: %v", left)
	}
	sum, err := faulttest.Sum(filepath.Join(w.Out, "wbox.lock"))
	if err != nil {
		f.t.Fatal(err)
	}
	now, keys := facts{Lock: sum}, map[string]string{}
	for _, s := range f.manifest(p).Stages {
		keys[s.Stage] = s.Key
		if s.Stage == "kube" {
			now.Kube = s.Outputs["bits"].Digest
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(keys)) {
		now.Keys += stage + " " + keys[stage] + "\n"
	}
	if before, ok := f.seen[k8s]; ok && before != now {
		f.t.Errorf("the same build gave %+v, before %+v", now, before)
	}
	f.seen[k8s] = now
}

// left is how many seconds of work a build has before it.
func (f *faulty) left(w *faulttest.Wbox, k8s string) (seconds float64) {
	f.t.Helper()
	e := w.Run(f.t, nil, append([]string{"plan", "--format", "json", "--k8s", k8s}, w.Selection...)...)
	var plan struct{ Stages []builder.PlanLine }
	if err := json.Unmarshal([]byte(e.Stdout), &plan); err != nil {
		f.t.Fatalf("wbox plan: %v\n%s", err, e.Stderr)
	}
	for _, l := range plan.Stages {
		if l.Status != "hit" {
			seconds += f.seconds[l.Stage]
		}
	}
	return seconds
}
