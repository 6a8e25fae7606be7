package ui

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

// PrintError prints err, each problem of a request on a line of its own, and
// returns the exit code.
func PrintError(w io.Writer, err error) int {
	var p *fault.Preflight
	if !errors.As(err, &p) || len(p.Errs) == 1 {
		fmt.Fprintf(w, "wbox: %v\n", err)
		return int(fault.ClassOf(err))
	}
	fmt.Fprintf(w, "wbox: %d problems, nothing was started:\n", len(p.Errs))
	for _, e := range p.Errs {
		fmt.Fprintf(w, "  - %v\n", e)
	}
	return int(p.Class())
}

// Interrupted says how a build ended that the user stopped, and returns the
// exit code.
func Interrupted(w io.Writer, after time.Duration) int {
	fmt.Fprintf(w, "wbox: interrupted after %s; what is finished is kept: run it again to go on\n", Elapsed(after))
	return int(fault.Interrupted)
}
