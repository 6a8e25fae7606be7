package faulttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Wbox is how a test runs wbox: as a child process with its own store, output
// folder and folder for temporary files.
type Wbox struct {
	Program   []string // what runs wbox, before wbox's own arguments
	Env       []string // beside the test's own
	Store     string
	Out       string
	Tmp       string   // TMPDIR of the child, which is to be empty afterwards
	Selection []string // arguments of build and plan beside store and output

	mark    string          // tells the child's processes from all others
	boxes   map[string]bool // digests of boxes that other stores have made
	journal string          // see machines
}

// markEnv is inherited by all that a child starts.
const markEnv = "WBOX_FAULT_MARK"

// Blow is what happens to a run: Signals are sent when it has told that many
// events and After has passed, Gap lies between two of them. A run may be done
// by then.
type Blow struct {
	Event   int
	After   time.Duration
	Signals []syscall.Signal
	Gap     time.Duration
	// Then, where it is set, happens in place of signals.
	Then func()
}

func (b Blow) String() string {
	return fmt.Sprintf("%v at event %d + %v", b.Signals, b.Event, b.After.Round(10*time.Microsecond))
}

// End is how a run ended.
type End struct {
	Code   int            // exit code, -1 where a signal ended it
	Signal syscall.Signal // that ended it
	Struck bool           // the blow came before the end
	Events int            // of stages, that were told
	Phase  string         // the stage of the last one
	Last   time.Duration  // from the last event of a stage to the end
	Stdout string
	Stderr string // its last lines
}

// Build runs wbox build.
func (w *Wbox) Build(t testing.TB, b *Blow, args ...string) End {
	t.Helper()
	all := append([]string{"build", "-o", w.Out, "--progress", "json"}, w.Selection...)
	return w.Run(t, b, append(all, args...)...)
}

// Run runs wbox with the store.
func (w *Wbox) Run(t testing.TB, b *Blow, args ...string) End {
	t.Helper()
	e, err := w.run(t.Context(), b, append(args, "--store", w.Store))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (w *Wbox) run(ctx context.Context, b *Blow, args []string) (End, error) {
	cmd := exec.CommandContext(ctx, w.Program[0], append(w.Program[1:len(w.Program):len(w.Program)], args...)...)
	if w.mark == "" {
		w.mark = fmt.Sprintf("%d-%s", os.Getpid(), w.Tmp)
	}
	cmd.Env = append(append(os.Environ(), "TMPDIR="+w.Tmp, markEnv+"="+w.mark), w.Env...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return End{}, err
	}
	if err := cmd.Start(); err != nil {
		return End{}, err
	}
	var e End
	var lines []string
	var blow sync.WaitGroup
	over := make(chan struct{})
	last := time.Now()
	strike := func() {
		if b == nil || e.Events != b.Event {
			return
		}
		blow.Go(func() { e.Struck = b.strike(cmd.Process, over) })
	}
	strike()
	for in := bufio.NewScanner(stderr); in.Scan(); {
		lines = append(lines, in.Text())
		var event struct{ Kind, Stage string }
		if json.Unmarshal(in.Bytes(), &event) == nil && event.Stage != "" && event.Kind != "stage-stopped" {
			last = time.Now()
			e.Phase = event.Stage
			e.Events++
			strike()
		}
	}
	err = cmd.Wait()
	e.Last = time.Since(last)
	close(over)
	blow.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return End{}, err
	}
	e.Code, e.Stdout, e.Stderr = cmd.ProcessState.ExitCode(), stdout.String(), strings.Join(lines[max(0, len(lines)-30):], "\n")
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		e.Signal = s.Signal()
	}
	return e, nil
}

// strike says whether the run was still at work.
func (b *Blow) strike(p *os.Process, over <-chan struct{}) bool {
	if !pause(b.After, over) {
		return false
	}
	if b.Then != nil {
		b.Then()
		return true
	}
	for i, s := range b.Signals {
		if i > 0 && !pause(b.Gap, over) {
			return true
		}
		if p.Signal(s) != nil {
			return i > 0
		}
	}
	return true
}

func pause(d time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-over:
		return false
	}
}

// Processes lists what lives of that which a child has started, itself
// included, as process ids with command lines.
func (w *Wbox) Processes() []string {
	var out []string
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		panic(err) // the pattern is right
	}
	for _, name := range names {
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(env, []byte(markEnv+"="+w.mark+"\x00")) {
			continue // gone, a zombie, or somebody else's
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || len(line) == 0 {
			continue
		}
		out = append(out, filepath.Base(filepath.Dir(name))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return out
}

// Quiet waits until nothing that a child has started lives any more, and
// returns what still does after the given time.
func (w *Wbox) Quiet(limit time.Duration) []string {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if left := w.Processes(); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}
