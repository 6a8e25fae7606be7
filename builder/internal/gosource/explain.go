package gosource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// explain turns a failure of the go command into what the user can mend.
func (b *Build) explain(ctx context.Context, err error, w *watcher) error {
	if ctx.Err() != nil {
		return fmt.Errorf("compiling %s: %w", b.Ref.Version, ctx.Err())
	}
	p := &fault.Problem{Class: fault.Failed, Field: b.Settings.Field, Value: b.Ref.Version, Fix: "the whole output is in " + b.log.Name()}
	text := OutputOf(err)
	// said returns the first line that contains one of the marks.
	said := func(marks ...string) error {
		for line := range strings.Lines(text) {
			for _, m := range marks {
				if strings.Contains(line, m) {
					return errors.New(strings.TrimSpace(line))
				}
			}
		}
		return nil
	}
	compiler := ""
	if w != nil && w.firstPkg != "" { // without a package it is about a missing module
		compiler = w.firstErr
	}
	full := said("no space left on device", "not enough space on the disk")
	memory := said("signal: killed", "out of memory", "cannot allocate memory")
	checksum := said("SECURITY ERROR", "checksum mismatch")
	network := said("dial tcp", "reading http", "reading file:", "Forbidden", "Not Found", "i/o timeout", "TLS handshake", "connection re", "GOPROXY")
	switch {
	case full != nil:
		p.Class, p.Field, p.Value, p.Why, p.Err = fault.Host, "disk", "", "is full: a compile of "+b.Settings.What+" needs up to 4 GB", full
	case memory != nil:
		p.Class, p.Field, p.Value, p.Why, p.Err = fault.Host, "memory", "", "is short: a compile of "+b.Settings.What+" needs up to 2 GB", memory
	case compiler != "":
		p.Why, p.Err = "does not compile for Windows (package "+w.firstPkg+")", errors.New(compiler)
	case checksum != nil:
		p.Class, p.Why, p.Err = fault.Input, "was refused, since a module's checksum is not the expected one", checksum
	case network != nil:
		p.Class, p.Why, p.Err = fault.Network, "can't be compiled, since a module could not be downloaded", network
	default:
		p.Why, p.Err = "could not be compiled", err
	}
	return p
}
