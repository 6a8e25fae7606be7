package standin

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/qemu"
)

// compareArgv compares the running QEMU's arguments with those that the driver
// makes for a Windows of the same Config; only what is free to differ may.
func (l *lab) compareArgv(cfg hypervisor.Config) {
	l.t.Helper()
	const free = "FREE"
	want := qemu.Argv(cfg, qemu.Host{Accelerator: cfg.Accelerator, FirmwareCode: free, NVRAM: free, Monitor: free})
	found := false
	for _, pid := range qemuChildren() {
		data, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil {
			l.t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")[1:]
		if len(got) < 2 || got[1] != want[1] {
			continue // another machine of ours
		}
		found = true
		if len(got) != len(want) {
			l.t.Fatalf("QEMU runs with\n%q, not\n%q", got, want)
		}
		for i := range got {
			head, _, cut := strings.Cut(want[i], free)
			same := got[i] == want[i] || (cut && strings.HasPrefix(got[i], head)) ||
				(strings.HasPrefix(want[i], "user,") && strings.HasPrefix(got[i], "user,")) // the ports
			if !same {
				l.t.Errorf("QEMU runs with %q, not %q", got[i], want[i])
			}
		}
	}
	if !found && runtime.GOOS == "linux" {
		l.t.Error("the running QEMU was not found")
	}
}

// qemuChildren returns the process numbers of this process's QEMU children, from
// Linux's /proc; elsewhere none.
func qemuChildren() []string {
	var pids []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") //nolint:errcheck // the pattern is right
	for _, path := range stats {
		fields := statFields(path)
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			if name, err := os.ReadFile(filepath.Join(filepath.Dir(path), "comm")); err == nil && strings.HasPrefix(string(name), "qemu-system") {
				pids = append(pids, filepath.Base(filepath.Dir(path)))
			}
		}
	}
	return pids
}

// statFields returns the fields of a process's stat behind its name: its state,
// its parent, and so on (proc(5)).
func statFields(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data)[strings.LastIndex(string(data), ")")+1:])
}

// children returns the processor time of the QEMU children, which is the sum of
// the fields utime and stime, in hundredths of a second.
func children() string {
	total := 0
	for _, pid := range qemuChildren() {
		fields := statFields("/proc/" + pid + "/stat")
		if len(fields) < 13 {
			continue
		}
		for _, f := range fields[11:13] {
			if n, err := strconv.Atoi(f); err == nil {
				total += n
			}
		}
	}
	return fmt.Sprintf("%.1f", float64(total)/100)
}
