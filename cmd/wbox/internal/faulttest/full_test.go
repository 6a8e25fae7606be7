//go:build linux

package faulttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const page = 4096 // what a tmpfs gives out at a time, in bytes

// volume is a small file system of its own, that can be filled up.
type volume struct {
	t   testing.TB
	dir string
}

func newVolume(t testing.TB, dir string) volume {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	switch err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=96m,nr_inodes=4000"); {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		t.Skip("mounting a tmpfs of limited size is not permitted here; it takes root")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return volume{t, dir}
}

func (v volume) free() (pages, files int64) {
	v.t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(v.dir, &s); err != nil {
		v.t.Error(err)
	}
	return int64(s.Bavail), int64(s.Ffree)
}

// fill leaves room for so many pages, and for so many files; -1 leaves all.
func (v volume) fill(pages, files int64) {
	filler := filepath.Join(v.dir, "filler")
	err := os.MkdirAll(filler, 0o755)
	if have, _ := v.free(); err == nil && pages >= 0 && have > pages {
		var f *os.File
		if f, err = os.Create(filepath.Join(filler, "pages")); err == nil {
			err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, (have-pages)*page), f.Close())
		}
	}
	for i := 0; err == nil && files >= 0; i++ {
		if _, have := v.free(); have <= files {
			break
		}
		err = os.Symlink("nowhere", filepath.Join(filler, fmt.Sprint(i)))
	}
	// The run writes meanwhile and may be quicker, so that there is less.
	if err != nil && !errors.Is(err, unix.ENOSPC) {
		v.t.Errorf("filling the volume: %v", err)
	}
}

func (v volume) empty() {
	v.t.Helper()
	if err := os.RemoveAll(filepath.Join(v.dir, "filler")); err != nil {
		v.t.Error(err)
	}
}

// checkFull checks how a run ended that had no room any more.
func checkFull(t *testing.T, w *Wbox, e End, folder string) {
	t.Helper()
	if e.Code == 0 {
		w.CheckOutput(t)
		return // what was left was enough
	}
	if e.Code != 4 || !strings.Contains(e.Stderr, "no space left on device") && !strings.Contains(e.Stderr, "No space left") && !strings.Contains(e.Stderr, "is full") {
		t.Errorf("exit code %d:\n%s", e.Code, e.Stderr)
	}
	last := e.Stderr[strings.LastIndex(e.Stderr, "wbox: "):]
	if !strings.Contains(last, folder) || !strings.Contains(last, "make room") && !strings.Contains(last, "name another") {
		t.Errorf("it does not say where, or what to do: %s", last)
	}
	if left := w.Quiet(5 * time.Second); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if left := w.Leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	versions := w.CheckOutput(t)
	if len(versions) == 0 || versions[0] != oldVersion[1:]+".0" {
		t.Errorf("the catalog offers %v", versions)
	}
}

// fullStore lets the store's disk get full at moments of a build from its
// first event to its last: of bytes, then of files.
func fullStore(l *lab) {
	t := l.t
	site := l.site("full-store")
	v := newVolume(t, l.own("volume"))
	site.Store = filepath.Join(v.dir, "store")
	r := rand.New(rand.NewPCG(seed(t), 0))
	failed := 0
	for i, step := range []int{5, 2} { // an empty store, and a warm one
		for at := r.IntN(step); at <= l.events[i] && !t.Failed(); at += step {
			l.reset(site, i == 1)
			b := Blow{Event: at, Then: func() { v.fill(r.Int64N(1<<r.Int64N(8)), -1) }}
			if r.IntN(3) == 0 {
				b.Then = func() { v.fill(-1, r.Int64N(20)) }
			}
			e := site.Build(t, &b, "--k8s", l.path(newVersion))
			v.empty()
			checkFull(t, site, e, v.dir)
			site.CheckStore(t)
			if e.Code != 0 {
				failed++
			}
			l.complete(t, site)
			if t.Failed() {
				t.Logf("it was full from event %d on, in %s", at, e.Phase)
			}
		}
	}
	t.Logf("%d builds ran out of space", failed)
	if failed < 12 {
		t.Error("too few: this test no longer tests")
	}
}

// fullOutput lets the output folder's disk get full at every page of the
// small files, and at some of the box, and at every new file.
func fullOutput(l *lab) {
	t := l.t
	site := l.site("full-output")
	v := newVolume(t, l.own("volume"))
	site.Out = filepath.Join(v.dir, "out")
	l.reset(site, true)
	l.complete(t, site) // the store has all from now on: only publishing is left
	before, _ := v.free()
	if err := site.Restore(t.Context(), l.published, l.path("undisturbed/out")); err != nil {
		t.Fatal(err)
	}
	after, _ := v.free()
	need := after - before // pages that publishing takes
	if need < 20 {
		t.Fatalf("publishing takes %d pages", need)
	}
	var rooms [][2]int64
	for n := range int64(8) {
		rooms = append(rooms, [2]int64{n, -1}, [2]int64{need - 4 + n, -1}, [2]int64{need * (n + 1) / 10, -1}, [2]int64{-1, n})
	}
	failed := 0
	for _, room := range rooms {
		if err := site.Restore(t.Context(), l.published, l.path("undisturbed/out")); err != nil {
			t.Fatal(err)
		}
		v.fill(room[0], room[1])
		e := site.Build(t, nil, "--k8s", l.path(newVersion))
		v.empty()
		checkFull(t, site, e, v.dir)
		if e.Code != 0 {
			failed++
		}
		l.complete(t, site)
		if t.Failed() {
			t.Fatalf("with room for %d pages and %d files (-1: enough); publishing takes %d", room[0], room[1], need)
		}
	}
	t.Logf("%d of %d builds ran out of space; publishing takes %d pages", failed, len(rooms), need)
	if failed < 20 || failed == len(rooms) {
		t.Error("the rooms don't fit any more: this test no longer tests")
	}
}
