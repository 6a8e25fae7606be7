package bake

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// stuck is a machine whose screen can't be had.
type stuck struct{ hypervisor.Machine }

func (stuck) Screenshot(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }

func TestAFailureSaysWhereToLook(t *testing.T) {
	b := newBench(t)
	r := b.start()
	err := r.explain(t.Context(), errors.New("boom"))
	if fault.ClassOf(err) != fault.Guest || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), b.runDir) {
		t.Errorf("got %v", err)
	}
	if fi, err := os.Stat(filepath.Join(b.runDir, "screen.png")); err != nil || fi.Size() == 0 {
		t.Errorf("no screenshot: %v", err)
	}
	named := &fault.Problem{Class: fault.Host, Why: "no room"}
	if err := r.explain(t.Context(), named); fault.ClassOf(err) != fault.Host {
		t.Errorf("a problem that says what to do was given another class: %v", err)
	}
}

// Ctrl-C while the remains of a failure are gathered ends that too.
func TestCancelEndsTheGatheringOfLogs(t *testing.T) {
	r := newBench(t).start()
	r.machine = stuck{r.machine}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	started := time.Now()
	if err := r.explain(ctx, errors.New("boom")); err == nil {
		t.Error("the failure was lost")
	}
	if d := time.Since(started); d > 5*time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestAGuestThatStaysOnIsGivenUp(t *testing.T) {
	r := newBench(t).start()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := r.WaitOff(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
