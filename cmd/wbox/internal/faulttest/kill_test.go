//go:build linux

package faulttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// kills kills builds at random moments.
func kills(l *lab) {
	l.disturb(count(l.t, "WBOX_TEST_KILLS", 100), func(r *rand.Rand, b *Blow) { b.Signals = []syscall.Signal{syscall.SIGKILL} },
		func(t *testing.T, w *Wbox, e End, _ []string) {
			if e.Signal != syscall.SIGKILL {
				t.Errorf("it ended with %d and %v", e.Code, e.Signal)
			}
			if left := w.Quiet(5 * time.Second); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
}

// interrupts interrupts builds at random moments, every third one twice.
func interrupts(l *lab) {
	l.disturb(count(l.t, "WBOX_TEST_INTERRUPTS", 100), func(r *rand.Rand, b *Blow) {
		b.Signals = []syscall.Signal{syscall.SIGINT}
		if r.IntN(3) == 0 {
			b.Signals = append(b.Signals, syscall.SIGINT)
			b.Gap = time.Duration(r.Int64N(int64(20 * time.Millisecond)))
		}
	}, func(t *testing.T, w *Wbox, e End, before []string) {
		twice := e.Signal == syscall.SIGINT // before it was done with the first one
		if e.Code != 130 && !twice {
			t.Errorf("it ended with exit code %d, %v:\n%s", e.Code, e.Signal, e.Stderr)
		}
		if left := w.Quiet(5 * time.Second); len(left) > 0 {
			t.Errorf("still running after 5 s: %v", left)
		}
		left := slices.DeleteFunc(w.Leftovers(t), func(p string) bool { return slices.Contains(before, p) })
		if len(left) > 0 && !twice {
			t.Errorf("left behind: %v", left)
		}
	})
}

// disturb strikes builds n times and checks each time, and each time that a
// run which nothing happens to then completes, redoing nothing that was done.
func (l *lab) disturb(n int, aim func(*rand.Rand, *Blow), check func(*testing.T, *Wbox, End, []string)) {
	const workers = 3
	s := seed(l.t)
	var mu sync.Mutex
	seen, late := phases{}, 0
	var sites [workers]*Wbox
	for i := range sites {
		// One on a disk, and the others in memory, where flushing costs nothing.
		sites[i] = l.site(fmt.Sprintf("site-%d%s", i, []string{"", "-fast"}[min(i, 1)]))
	}
	l.t.Run("runs", func(t *testing.T) {
		for i := range workers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(s, uint64(i)))
				site := sites[i]
				for done := 0; done < (n+workers-1-i)/workers; {
					warm := r.IntN(2) == 0
					l.reset(site, warm)
					for more := true; more && !t.Failed(); more = r.IntN(2) == 0 { // another one before the run completes
						b := l.moment(r, warm)
						aim(r, &b)
						e := l.strike(t, site, b, check)
						mu.Lock()
						if e.Struck && e.Code != 0 {
							done++
							seen[e.Phase]++
						} else {
							late++
						}
						mu.Unlock()
					}
					if t.Failed() {
						return
					}
					l.complete(t, site)
				}
			})
		}
	})
	l.t.Logf("struck in: %v; %d blows came after the end", seen, late)
}

func (l *lab) strike(t *testing.T, site *Wbox, b Blow, check func(*testing.T, *Wbox, End, []string)) End {
	t.Helper()
	before := site.Leftovers(t) // of an earlier blow, if it was one after the other
	e := site.Build(t, &b, "--k8s", l.path(newVersion))
	if e.Struck && e.Code != 0 {
		check(t, site, e, before)
	} else if e.Code != 0 {
		t.Errorf("exit code %d without a reason:\n%s", e.Code, e.Stderr)
	}
	versions := site.CheckOutput(t)
	if len(versions) == 0 || versions[0] != oldVersion[1:]+".0" {
		t.Errorf("the catalog offers %v: the version that was published before is gone", versions)
	}
	site.CheckStore(t)
	if t.Failed() {
		t.Logf("the last blow: %v, in %s", b, e.Phase)
	}
	return e
}

// complete runs a build to its end.
func (l *lab) complete(t *testing.T, site *Wbox) {
	t.Helper()
	made := site.Made(t)
	if e := site.Build(t, nil, "--k8s", l.path(newVersion)); e.Code != 0 {
		t.Errorf("the run after it: exit code %d\n%s", e.Code, e.Stderr)
		return
	}
	site.CheckKept(t, made)
	l.finished(t, site)
}
