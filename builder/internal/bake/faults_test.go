package bake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
	hvfake "github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// ward is one bake of a layer with a guest that misbehaves, on a fake clock: the
// limits are the real ones, and hours pass in milliseconds.
type ward struct {
	t      *testing.T
	guest  *guestfake.Guest
	driver *hvfake.Driver
	layer  *Layer

	boots int // of the guest, as far as the machine has seen them

	mu       sync.Mutex
	asleep   bool      // the machine does nothing any more
	requests int       // so far
	begun    time.Time // when the guest began to misbehave
	first    string    // and at which request
	warnings []string
	kept     *report.Kept
	ctx      context.Context // of the bake; nil: the test's
}

// newWard makes a layer of two scripts, of which the first needs a reboot.
func newWard(t *testing.T) *ward {
	w := &ward{t: t, guest: guestfake.New()}
	w.guest.Scripts[readyScript] = guestfake.Always
	w.guest.Scripts["10-a"] = guestfake.AfterReboot
	w.guest.Scripts["20-b"] = guestfake.Installed
	w.driver = hvfake.New(w.live)
	w.driver.NoPorts = true
	w.layer = &Layer{ID: "layer", Label: "baking the layer", Scripts: []Script{{Name: "10-a"}, {Name: "20-b"}},
		Host: Host{Driver: w.driver, CPUs: 1, MemoryMiB: 1024, Poll: 2 * time.Second,
			Limits: Limits{Gather: 5 * time.Second},
			Dial: func(ctx context.Context, _ netip.AddrPort, _ guest.Access, _ bool) (guest.Conn, error) {
				return w.guest.Dial(ctx)
			}}}
	return w
}

// live is the machine: it works unless it sleeps, and follows the guest's power.
func (w *ward) live(ctx context.Context, m *hvfake.Guest) {
	tick := time.NewTicker(997 * time.Millisecond) // never at the same instant as the host's
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.guest.Off():
			m.PowerOff()
			return
		case <-tick.C:
			w.mu.Lock()
			asleep := w.asleep
			w.mu.Unlock()
			if !asleep {
				m.Work(1)
			}
			if now := w.guest.Boots(); now != w.boots {
				w.boots = now
				m.Reset()
				return
			}
		}
	}
}

// sleep makes the machine stand still.
func (w *ward) sleep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep = true
}

// misbehaves is what a guest does in place of a request, or before it carries it
// out; see guestfake.Guest.Interfere.
type misbehaves func(ctx context.Context, request string, stdout io.Writer) error

// between makes the requests from first to last, counted from 1, do as told.
func (w *ward) between(first, last int, do misbehaves) {
	w.guest.Interfere = func(ctx context.Context, request string, stdout io.Writer) error {
		w.mu.Lock()
		w.requests++
		now := w.requests >= first && w.requests <= last
		if now && w.begun.IsZero() {
			w.begun, w.first = time.Now(), request
		}
		w.mu.Unlock()
		if now {
			return do(ctx, request, stdout)
		}
		return nil
	}
}

// bakes runs the layer and returns what became of it, and how long it took since
// the guest began to misbehave. It does so in an engine over a store, or, since
// that flushes much to the disk, without.
func (w *ward) bakes(dir string, inStore bool) (err error, took time.Duration) { //nolint:revive // the error is what it is about
	w.t.Helper()
	began := time.Now()
	sink := report.SinkFunc(w.hear)
	if inStore {
		err = w.inStore(dir, sink)
	} else {
		run, scratch := filepath.Join(dir, "run", "layer"), filepath.Join(dir, "scratch")
		for _, d := range []string{run, scratch} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				w.t.Fatal(err)
			}
		}
		work := stage.NewWork(nil, map[string]string{DiskOutput: filepath.Join(scratch, DiskOutput)}, scratch, run, sink)
		if err = (&oneLayer{w.layer}).Run(w.context(), work); err != nil {
			err = fmt.Errorf("%s: %w", w.layer.Title(), err)
		}
	}
	if !w.begun.IsZero() {
		began = w.begun
	}
	took = time.Since(began)
	for _, m := range w.driver.Machines() {
		if !off(m) {
			w.t.Error("the machine was left running")
		}
	}
	return err, took
}

// inStore bakes in an engine and checks that nothing half done is kept.
func (w *ward) inStore(dir string, sink report.Sink) error {
	w.t.Helper()
	store, err := cas.Open(filepath.Join(dir, "store"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer store.Release()
	e := &engine.Engine{Store: store, RunID: "run", Run: filepath.Join(dir, "run"), Sink: sink}
	_, err = e.Build(w.context(), []stage.Stage{&oneLayer{w.layer}}, w.layer.Name())
	results, listing := filepath.Glob(filepath.Join(dir, "store", "results", "*"))
	if listing != nil || (err != nil && len(results) > 0) || (err == nil && len(results) != 1) {
		w.t.Errorf("after %v the store holds %v (%v)", err, results, listing)
	}
	return err
}

func (w *ward) hear(e report.Event) {
	if e.Kept != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kept = e.Kept
	}
	if e.Kind == report.Warning {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warnings = append(w.warnings, e.Message)
	}
}

func (w *ward) context() context.Context {
	if w.ctx != nil {
		return w.ctx
	}
	return w.t.Context()
}

// starts boots a machine alone.
func (w *ward) starts(t *testing.T) *Running {
	t.Helper()
	work := stage.NewWork(nil, nil, t.TempDir(), t.TempDir(), report.SinkFunc(w.hear))
	r, err := w.layer.Host.Start(t.Context(), work, Boot{Name: "test", Disk: filepath.Join(t.TempDir(), "disk.qcow2"), TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// explained checks that an error says all that one needs to go on.
func (w *ward) explained(err error, dir string, texts ...string) {
	w.t.Helper()
	var p *fault.Problem
	if !errors.As(err, &p) || p.Class != fault.Guest {
		w.t.Errorf("%v is of class %d, want a problem of the guest's", err, fault.ClassOf(err))
		return
	}
	run := filepath.Join(dir, "run", "layer")
	for _, text := range append(texts, "baking the layer", "last sign of life: the guest ", "look into "+run, transcriptFile) {
		if !strings.Contains(err.Error(), text) {
			w.t.Errorf("%q lacks %q", err, text)
		}
	}
	_, shot := os.Stat(filepath.Join(run, screenFile))
	if said := strings.Contains(err.Error(), screenFile); said != (shot == nil) || !said && !strings.Contains(err.Error(), "no screenshot") {
		w.t.Errorf("%q, and the screenshot: %v", err, shot)
	}
}

// oneLayer is a layer without a parent's disk.
type oneLayer struct{ *Layer }

func (*oneLayer) Inputs() []stage.Input { return nil }

func (l *oneLayer) Run(ctx context.Context, w *stage.Work) (err error) {
	if err := os.WriteFile(w.Out(DiskOutput), []byte("disk"), 0o644); err != nil {
		return err
	}
	r, err := l.Host.Start(ctx, w, Boot{Name: l.ID, Disk: w.Out(DiskOutput), TLS: true, Access: guest.Access{User: "u", Password: "secret"}})
	if err != nil {
		return err
	}
	defer func() { err = r.End(ctx, err) }()
	return l.bake(ctx, w, r)
}

// wardKey is where a behaviour finds its ward.
type wardKey struct{}

func (w *ward) in(ctx context.Context) context.Context { return context.WithValue(ctx, wardKey{}, w) }

func wardOf(ctx context.Context) *ward { return ctx.Value(wardKey{}).(*ward) }

// silent is a connection on which nothing comes any more.
func silent(ctx context.Context, _ string, _ io.Writer) error {
	<-ctx.Done()
	return &guest.Unknown{Err: context.Cause(ctx)}
}

// behaviour is one way to misbehave, which may begin at any request.
type behaviour struct {
	name  string
	do    misbehaves
	once  bool                          // at one request only
	setup func(w *ward)                 // optional
	fine  func(first string) bool       // whether the bake ends well where it begins at that request; nil: always
	texts func(request string) []string // what the error says, where it does not
	limit time.Duration                 // from the beginning of the misbehaviour to the end of the bake
	warns func(request string) string   // a warning, where it ends well
}

// requestsOf lists what a bake that goes well asks the guest for.
func requestsOf(t *testing.T) []string {
	var list []string
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		if err, _ := w.bakes(t.TempDir(), true); err != nil {
			t.Fatal(err)
		}
		list = w.guest.Requests()
	})
	if len(list) < 12 || list[0] != "boot-time" || !strings.HasPrefix(list[len(list)-1], "shutdown.exe /s") {
		t.Fatalf("a bake asks for %q", list)
	}
	return list
}

// TestMisbehaviour lets the guest misbehave in every way at every request of a
// bake.
func TestMisbehaviour(t *testing.T) {
	list := requestsOf(t)
	for nth, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			for i, request := range list {
				if !t.Run(fmt.Sprintf("%02d %s", i, request), func(t *testing.T) {
					dir := t.TempDir()
					synctest.Test(t, func(t *testing.T) { b.check(t, dir, i+1, i%len(list) == nth%len(list)) })
				}) {
					return
				}
			}
		})
	}
}

func (b *behaviour) check(t *testing.T, dir string, n int, inStore bool) {
	w := newWard(t)
	if b.setup != nil {
		b.setup(w)
	}
	do := b.do
	last := 1 << 30
	if b.once {
		last = n
	}
	w.between(n, last, func(ctx context.Context, request string, stdout io.Writer) error {
		return do(w.in(ctx), request, stdout)
	})
	err, took := w.bakes(dir, inStore)
	fine := b.fine == nil || b.fine(w.first)
	switch {
	case fine != (err == nil):
		t.Errorf("it ended with %v", err)
	case err != nil:
		var texts []string
		if b.texts != nil {
			texts = b.texts(w.first)
		}
		w.explained(err, dir, texts...)
	case b.warns != nil:
		want := b.warns(w.first)
		if got := strings.Join(w.warnings, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("it warned %q, want %q", got, want)
		}
	}
	if took > b.limit+5*time.Second {
		t.Errorf("it took %v, want at most %v: %v", took, b.limit, err)
	}
}
