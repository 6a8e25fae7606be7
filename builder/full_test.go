package builder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

func TestAFullDiskIsNamed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has other error numbers")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	store := filepath.Join(tmp, "store")
	b, out := newTestBuilder(t, store, plenty), filepath.Join(store, "out")
	write := func(dir string) error {
		return fmt.Errorf("doing: %w", &os.PathError{Op: "write", Path: filepath.Join(dir, "f"), Err: syscall.ENOSPC})
	}
	for _, c := range []struct {
		name  string
		err   error
		class fault.Class
		says  string
	}{
		{"in the store", write(store), fault.Host, "--store " + store + ": its disk is full: doing"},
		{"in an output folder below it", write(out), fault.Host, "-o " + out + ": its disk is full"},
		{"among temporary files", write(tmp), fault.Host, "TMPDIR " + tmp + ": its disk is full"},
		{"elsewhere", write("/elsewhere"), fault.Host, "--store " + store},
		{"a quota", fmt.Errorf("x: %w", syscall.EDQUOT), fault.Host, "--store " + store},
		{"a program's", fmt.Errorf("x: %w", &exec.Error{Argv: []string{"qemu-img"}, Code: 1, Output: "error while writing: No space left on device", Err: errors.New("exit code 1")}), fault.Host, "--store " + store},
		{"while a guest was waited for", &fault.Problem{Class: fault.Guest, Err: write(store)}, fault.Host, "--store " + store},
		{"told already", &fault.Problem{Class: fault.Host, Field: "disk", Err: write(store)}, fault.Host, "disk: doing"},
		{"in the guest", &fault.Problem{Class: fault.Guest, Why: "No space left on device"}, fault.Guest, "No space"},
		{"another error", errors.New("other"), fault.Failed, "other"},
	} {
		err := b.full(c.err, out)
		if fault.ClassOf(err) != c.class || !strings.HasPrefix(err.Error(), c.says) || !errors.Is(err, c.err) {
			t.Errorf("%s: class %d, %v", c.name, fault.ClassOf(err), err)
		}
	}
	if err := b.full(nil, out); err != nil {
		t.Error(err)
	}
}
