package qemu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/drivertest"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// parent is the test binary as a builder that starts a machine and is killed.
// It leaves QEMU's process id in a file.
func parent() {
	var cfg hypervisor.Config
	if err := json.Unmarshal([]byte(os.Args[1]), &cfg); err != nil {
		panic(err)
	}
	m, err := New(Options{}).Start(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	pid := strconv.Itoa(m.(*Machine).proc.Pid())
	if err := os.WriteFile(filepath.Join(cfg.Dir, "pid"), []byte(pid), 0o600); err != nil {
		panic(err)
	}
	<-m.Done()
}

func TestMachineDiesWithItsBuilder(t *testing.T) {
	needQEMU(t)
	cfg := tinyGuest(t, drivertest.Idle)
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	builder, err := exec.Start(t.Context(), exec.Command{
		Program: os.Args[0], Args: []string{string(text)}, Env: append(os.Environ(), fakeMode+"=parent"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	wait(t, "the machine's start", func() bool {
		data, err := os.ReadFile(filepath.Join(cfg.Dir, "pid"))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(string(data))
		return err == nil && runs(pid)
	})
	process, err := os.FindProcess(builder.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil { // the builder alone: QEMU is in a group of its own
		t.Fatal(err)
	}
	wait(t, fmt.Sprintf("the end of QEMU, process %d", pid), func() bool { return !runs(pid) })
}

func wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
