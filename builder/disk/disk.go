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
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// Tool is a qemu-img to work with. It is safe for concurrent use, on
// different images.
type Tool struct {
	path string
}

// Find returns the qemu-img at path, or the one in PATH where path is empty.
// A missing one is a *fault.Problem of class fault.Host.
func Find(path string) (*Tool, error) {
	if path == "" {
		path = "qemu-img"
	}
	found, err := exec.Look(path)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(found)
	if err != nil {
		return nil, fmt.Errorf("finding qemu-img: %w", err)
	}
	return &Tool{path: abs}, nil
}

// run runs qemu-img and returns what it printed to stdout.
func (t *Tool) run(ctx context.Context, args ...string) ([]byte, error) {
	env := append(os.Environ(), "LC_ALL=C") // its messages end up in errors
	return exec.Run(ctx, exec.Command{Program: t.path, Args: args, Env: env})
}

// exitCode returns the program's exit code, -1 where it has none.
func exitCode(err error) int {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return -1
}
