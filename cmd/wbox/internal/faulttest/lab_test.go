//go:build linux

package faulttest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

// Versions that the runs bake: the old one is published and in the store
// before anything happens.
const (
	oldVersion = "v1.37.1"
	newVersion = "v1.37.2"
)

// lab is what the runs of a test share: inputs, and what a run that nothing
// happens to leaves.
type lab struct {
	t         *testing.T
	dir       string
	part      string // of dir, for what belongs to one test
	shm       string // a folder in memory, see memory
	published string // an output folder with the old version in it
	warm      string // the store that the old version was baked in
	boxes     map[string]bool
	contents  map[string]string // of a store with both versions
	seeds     string            // lines of a journal, sorted, each once
	lock      string            // digest of the lock
	plan      string            // digest of the plan
	// How many events a run has, and how long it takes, from the first event and
	// from the last one to its end: with an empty store, and with a warm one.
	events      [2]int
	whole, last [2]time.Duration
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("runs builds for minutes")
	}
	for _, tool := range []string{"qemu-img", "qemu-io", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	l := &lab{t: t, dir: t.TempDir(), boxes: map[string]bool{}}
	if err := writeLayout(t.Context(), l.path("layout.qcow2")); err != nil {
		t.Fatal(err)
	}
	if err := isotest.WriteFake(l.path("stand-in.iso"), isotest.Editions("2022"), &iso.StandIn{StandIn: true, Version: "1"}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{oldVersion, newVersion} {
		if err := kubetest.BuildFixture(t.Context(), l.path(v), v, ""); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(l.path(v), "version"), []byte(v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.measure()
	return l
}

// in returns the lab for one test.
func (l *lab) in(t *testing.T) *lab {
	own := *l
	own.t, own.part = t, filepath.Base(t.Name())
	return &own
}

// path names what all tests share, own what belongs to one.
func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }
func (l *lab) own(name string) string  { return filepath.Join(l.dir, l.part, name) }

// measure makes runs that nothing happens to.
func (l *lab) measure() {
	l.t.Helper()
	site := l.site("undisturbed")
	must := func(e End) End {
		l.t.Helper()
		if e.Code != 0 {
			l.t.Fatalf("an undisturbed run failed: %+v", e)
		}
		return e
	}
	must(site.Build(l.t, nil, "--k8s", l.path(oldVersion)))
	l.published, l.warm = l.path("published"), l.path("warm")
	l.copy(site.Out, l.published)
	l.copy(site.Store, l.warm)
	for i := range l.events {
		if i == 0 {
			l.remove(site.Store)
		} else {
			l.reset(site, true)
		}
		began := time.Now()
		e := must(site.Build(l.t, nil, "--k8s", l.path(newVersion)))
		l.events[i], l.whole[i], l.last[i] = e.Events, time.Since(began), e.Last
		for sum := range site.madeBoxes(l.t) {
			l.boxes[sum] = true
		}
	}
	l.contents, l.seeds, l.lock = site.Contents(l.t), l.journal(site), l.sum(filepath.Join(site.Out, "wbox.lock"))
	l.plan = l.planOf(site)
	l.t.Logf("an undisturbed run tells %d events in %v, with a warm store %d in %v", l.events[0], l.whole[0], l.events[1], l.whole[1])
}

// site returns a place of its own for runs.
func (l *lab) site(name string) *Wbox {
	l.t.Helper()
	dir := l.own(name)
	if fast := l.memory(); fast != "" && strings.HasSuffix(name, "-fast") {
		dir = filepath.Join(fast, l.part, name)
	}
	w := &Wbox{Program: []string{os.Args[0]}, Store: filepath.Join(dir, "store"), Out: filepath.Join(dir, "out"), Tmp: filepath.Join(dir, "tmp"),
		Selection: []string{"--iso", l.path("stand-in.iso"), "--cni", "calico", "--disk", strconv.Itoa(diskGiB)},
		Env:       []string{"WBOX_WINE=none", layoutEnv + "=" + l.path("layout.qcow2"), journalEnv + "=" + filepath.Join(dir, "seeds")}, boxes: l.boxes, journal: filepath.Join(dir, "seeds")}
	if err := os.MkdirAll(w.Tmp, 0o755); err != nil {
		l.t.Fatal(err)
	}
	return w
}

// memory returns a folder in memory, "" where there is none with much room.
func (l *lab) memory() string {
	var s unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &s); err != nil || s.Type != unix.TMPFS_MAGIC || s.Bavail*uint64(s.Bsize) < 2<<30 {
		return ""
	}
	if l.shm == "" {
		var err error
		if l.shm, err = os.MkdirTemp("/dev/shm", "wbox-faulttest-"); err != nil {
			return ""
		}
		l.t.Cleanup(func() { os.RemoveAll(l.shm) })
	}
	return l.shm
}

// reset puts a site back to where the old version is published.
func (l *lab) reset(w *Wbox, warm bool) {
	l.t.Helper()
	l.remove(w.Store)
	if err := w.Restore(l.t.Context(), l.published, l.path("undisturbed/out")); err != nil {
		l.t.Fatal(err)
	}
	if warm {
		l.copy(l.warm, w.Store)
	}
}

func (l *lab) copy(from, to string) {
	l.t.Helper()
	if err := CopyTree(l.t.Context(), from, to); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) remove(paths ...string) {
	l.t.Helper()
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lab) sum(path string) string {
	l.t.Helper()
	s, err := Sum(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// journal returns what machines were given, each kind once, without those of
// runs that were ended while they wrote it down.
func (l *lab) journal(w *Wbox) string {
	l.t.Helper()
	data, err := os.ReadFile(w.journal)
	if err != nil {
		l.t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		lines[line] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "")
}

// planOf is what wbox plan says once all is baked.
func (l *lab) planOf(w *Wbox) string {
	l.t.Helper()
	e := w.Run(l.t, nil, append([]string{"plan", "--format", "json", "--k8s", l.path(newVersion)}, w.Selection...)...)
	if e.Code != 0 || e.Stdout == "" {
		l.t.Errorf("wbox plan: %+v", e)
	}
	return e.Stdout
}

// moment chooses when something happens to a run: any of its events is as
// likely as the time after the last one, in which the box is published.
func (l *lab) moment(r *rand.Rand, warm bool) Blow {
	i := 0
	if warm {
		i = 1
	}
	b := Blow{Event: r.IntN(l.events[i] + 1)}
	span := 2 * l.whole[i] / time.Duration(l.events[i])
	if r.IntN(6) == 0 {
		b.Event = l.events[i]
	}
	if b.Event == l.events[i] {
		span = l.last[i]
	}
	b.After = time.Duration(r.Int64N(int64(span)))
	return b
}

// seed returns the seed of the test's random numbers, and tells it.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano()) % 1e6
	if v := os.Getenv("WBOX_TEST_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("WBOX_TEST_SEED: %v", err)
		}
	}
	t.Logf("seed %d (WBOX_TEST_SEED=%[1]d plays the same moments again)", s)
	return s
}

// count returns how many times something is to happen.
func count(t *testing.T, name string, fallback int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// finished checks a site in which a run has come to its end.
func (l *lab) finished(t *testing.T, w *Wbox) {
	t.Helper()
	if got := w.CheckOutput(t); !slices.Equal(got, []string{oldVersion[1:] + ".0", newVersion[1:] + ".0"}) {
		t.Errorf("the catalog offers %v", got)
	}
	w.CheckStore(t)
	if left := w.Leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	got := w.Contents(t)
	for name, sum := range got {
		if want, ok := l.contents[name]; !ok || sum != want {
			t.Errorf("the result %s has the digest %s, undisturbed %q", name, sum, want)
		}
	}
	if l.sum(filepath.Join(w.Out, "wbox.lock")) != l.lock {
		t.Error("the lock is another one")
	}
	if plan := l.planOf(w); plan != l.plan {
		t.Errorf("the plan is another one:\n%s", differing(plan, l.plan))
	}
	for line := range strings.Lines(l.journal(w)) {
		if !strings.Contains(l.seeds, line) {
			t.Errorf("a seed differs: %s\nundisturbed:\n%s", line, l.seeds)
		}
	}
}

// differing lists the lines of which b has not the same one.
func differing(a, b string) string {
	var out strings.Builder
	other := slices.Collect(strings.Lines(b))
	for i, line := range slices.Collect(strings.Lines(a)) {
		if i >= len(other) || line != other[i] {
			fmt.Fprintf(&out, "%d: %s", i+1, line)
		}
	}
	return out.String()
}

// phases counts what happened when.
type phases map[string]int

func (p phases) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		out = append(out, fmt.Sprintf("%s %d", k, p[k]))
	}
	return strings.Join(out, ", ")
}
