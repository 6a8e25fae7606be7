package exec

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// running says whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, func() bool { return !running(pid) }, fmt.Sprintf("the end of process %d", pid))
	}
}

// TestChildDiesWithItsParent kills a parent the hard way.
func TestChildDiesWithItsParent(t *testing.T) {
	p, err := Start(t.Context(), child("grandparent"))
	if err != nil {
		t.Fatal(err)
	}
	all := pids(t, p.Output, 3)
	parent, err := os.FindProcess(all[0])
	if err != nil {
		t.Fatal(err)
	}
	// The process alone, not its group: the rest must follow by itself.
	if err := parent.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, all)
	wait(t, p)
	if p.Err() == nil || p.ExitCode() != -1 {
		t.Errorf("a killed program ended with %v, code %d", p.Err(), p.ExitCode())
	}
}

func TestCancelTakesTheGrandchildrenToo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := Start(ctx, child("parent"))
	if err != nil {
		t.Fatal(err)
	}
	all := pids(t, p.Output, 2)
	cancel()
	gone(t, all)
	wait(t, p)
}

// TestChildOutlivesTheStartingThread is about golang.org/issue/27505: the
// goroutine that calls Start takes its thread with it.
func TestChildOutlivesTheStartingThread(t *testing.T) {
	started := make(chan *Process)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		p, err := Start(context.Background(), child("sleep"))
		if err != nil {
			t.Error(err)
		}
		started <- p
	}()
	p := <-started
	pid := pids(t, p.Output, 1)[0]
	select {
	case <-p.Done():
		t.Fatalf("the child died with a thread: %v", p.Err())
	case <-time.After(300 * time.Millisecond):
	}
	if err := p.Kill(); err != nil || running(pid) {
		t.Errorf("killing: %v, still running: %v", err, running(pid))
	}
}
