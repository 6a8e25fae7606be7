// Package disk works on disk images: it makes qcow2 files and overlays through
// qemu-img, reads their partition tables, and writes the payload partition of
// a sealed disk without booting anything, mounting anything or being root. It
// must not import spec, stage or a stage.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Tool is a qemu-img to work with. It is safe for concurrent use, on
// different images.
type Tool struct {
	path string
}

// Find returns the qemu-img at path, or the one in PATH where path is empty.
// A missing one is a *fault.Problem of class fault.Host.
func Find(path string) (*Tool, error) {
	name := path
	if name == "" {
		name = "qemu-img"
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Host, Field: "qemu-img", Value: path, Why: "the program was not found",
			Fix: "install QEMU (Debian: apt install qemu-utils) or put it into PATH", Err: err}
	}
	abs, err := filepath.Abs(found)
	if err != nil {
		return nil, fmt.Errorf("finding qemu-img: %w", err)
	}
	return &Tool{path: abs}, nil
}

// tail is how much of a failed program's output an error keeps, in bytes.
const tail = 2000

// run runs qemu-img and returns what it printed to stdout.
func (t *Tool) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	text := strings.TrimSpace(stderr.String())
	if len(text) > tail {
		text = text[len(text)-tail:]
	}
	return out, &runError{args: args, output: text, err: err}
}

// runError is a qemu-img that failed.
type runError struct {
	args   []string
	output string
	err    error
}

func (e *runError) Error() string {
	return fmt.Sprintf("qemu-img %s: %v: %s", strings.Join(e.args, " "), e.err, e.output)
}

func (e *runError) Unwrap() error { return e.err }

// exitCode returns the program's exit code, -1 where it has none.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}
