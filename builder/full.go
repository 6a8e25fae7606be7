package builder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

const (
	diskIsFull = "its disk is full"
	outputFull = "make room, or name a folder on a larger disk with -o; what is finished is kept"
)

// full makes an error that comes of a full disk say which folder it was and
// what to do. Other errors, and those that say it already, stay as they are.
func (b *Builder) full(err error, output string) error {
	if !isFull(err) || fault.ClassOf(err) == fault.Host {
		return err
	}
	p := &fault.Problem{Class: fault.Host, Field: "--store", Value: b.store.Root(), Why: diskIsFull, Err: err,
		Fix: "make room (wbox cache prune), or name a folder on a larger disk with --store or WBOX_STORE; what is finished is kept"}
	// Nearly all that is written goes to the store, and a program doesn't say to
	// where it could not write.
	longest := 0
	for _, other := range []fault.Problem{
		{Field: "--store", Value: p.Value, Fix: p.Fix},
		{Field: "-o", Value: output, Fix: outputFull},
		{Field: "TMPDIR", Value: os.TempDir(), Fix: "make room, or name a folder on a larger disk with TMPDIR"},
	} {
		abs, absErr := filepath.Abs(other.Value)
		if absErr == nil && len(abs) > longest && strings.Contains(err.Error(), abs+string(filepath.Separator)) {
			longest, p.Field, p.Value, p.Fix = len(abs), other.Field, other.Value, other.Fix
		}
	}
	return p
}

// isFull knows what this process was told, and what a program was.
func isFull(err error) bool {
	if capacity.IsFull(err) {
		return true
	}
	var e *exec.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, words := range []string{"No space left on device", "Disk quota exceeded", "There is not enough space on the disk"} {
		if strings.Contains(e.Output, words) {
			return true
		}
	}
	return false
}
