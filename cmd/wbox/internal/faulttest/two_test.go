//go:build linux

package faulttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// started counts in a run's log how often each stage was begun.
func started(t *testing.T, w *Wbox) map[string]int {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.Store, "runs", "*", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, p := range logs {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var e struct{ Kind, Stage string }
			if json.Unmarshal(line, &e) == nil && e.Kind == "stage-started" {
				out[e.Stage]++
			}
		}
	}
	return out
}

// oneStore runs two at once into two folders.
func oneStore(l *lab) {
	t := l.t
	first, second := l.site("first"), l.site("second")
	second.Store, second.journal, second.Env = first.Store, first.journal, first.Env
	for _, w := range []*Wbox{first, second} {
		l.reset(w, false)
	}
	var both sync.WaitGroup
	for i, w := range []*Wbox{first, second} {
		both.Go(func() {
			time.Sleep(time.Duration(i) * 20 * time.Millisecond)
			if e := w.Build(t, nil, "--k8s", l.path(newVersion)); e.Code != 0 {
				t.Errorf("exit code %d:\n%s", e.Code, e.Stderr)
			}
		})
	}
	both.Wait()
	for _, w := range []*Wbox{first, second} {
		l.finished(t, w)
	}
	if n := len(started(t, first)); n != 10 {
		t.Errorf("%d stages were begun, want 10", n)
	}
	for stage, n := range started(t, first) {
		if n != 1 {
			t.Errorf("%s was begun %d times", stage, n)
		}
	}
}

// oneFolder starts another build into a folder where one is at work.
func oneFolder(l *lab) {
	t := l.t
	site := l.site("site")
	l.reset(site, false)
	other := *site
	other.Store = l.own("another-store")
	var e End
	var took time.Duration
	b := Blow{Event: 10, Then: func() {
		began := time.Now()
		e = other.Build(t, nil, "--k8s", l.path(newVersion))
		took = time.Since(began)
	}}
	if e := site.Build(t, &b, "--k8s", l.path(newVersion)); e.Code != 0 {
		t.Fatalf("the first: exit code %d\n%s", e.Code, e.Stderr)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if e.Code != 6 || !strings.Contains(e.Stderr, "-o "+site.Out+": another build writes there, process ") || !strings.Contains(e.Stderr, " on "+host) {
		t.Errorf("the second: exit code %d\n%s", e.Code, e.Stderr)
	}
	if took > 10*time.Second {
		t.Errorf("it took %v to say so", took)
	}
	l.finished(t, site)
}

// otherFileSystems has the store and the output folder on two, both ways.
func otherFileSystems(l *lab) {
	t := l.t
	v := newVolume(t, l.own("volume"))
	for i, c := range []struct{ store, out string }{{v.dir, l.own("disk")}, {l.own("disk"), v.dir}} {
		site := l.site(fmt.Sprint("site-", i))
		site.Store, site.Out = filepath.Join(c.store, "store"), filepath.Join(c.out, "out")
		l.reset(site, false)
		l.complete(t, site)
		l.remove(site.Store, site.Out)
	}
}
