package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// explain turns a failure of the go command into what the user can mend.
func (b *build) explain(ctx context.Context, err error, w *watcher) error {
	if ctx.Err() != nil {
		return fmt.Errorf("compiling %s: %w", b.ref.Version, ctx.Err())
	}
	p := &fault.Problem{Class: fault.Failed, Field: b.source.flag, Value: b.ref.Version, Fix: "the whole output is in " + b.log.Name()}
	text := outputOf(err)
	has := func(parts ...string) bool {
		for _, s := range parts {
			if strings.Contains(text, s) {
				return true
			}
		}
		return false
	}
	switch {
	case w != nil && w.firstErr != "":
		p.Why, p.Err = "does not compile for Windows", errors.New(w.firstErr)
		if w.firstPkg != "" {
			p.Why += " (package " + w.firstPkg + ")"
		}
	case has("no space left on device", "not enough space on the disk"):
		p.Class, p.Field, p.Value, p.Why = fault.Host, "disk", "", "is full: a compile of Kubernetes needs about 4 GB"
		p.Err = errors.New(lastLine(text))
	case has("signal: killed", "out of memory", "cannot allocate memory"):
		p.Class, p.Field, p.Value, p.Why = fault.Host, "memory", "", "is short: a compile of Kubernetes needs about 2 GB"
		p.Err = errors.New(lastLine(text))
	case has("SECURITY ERROR", "checksum mismatch"):
		p.Class, p.Why = fault.Input, "was refused, since a module's checksum is not the expected one"
		p.Err = errors.New(lastLine(text))
	case has("GOPROXY", "dial tcp", "reading http", "Forbidden", "Not Found", "i/o timeout", "TLS handshake", "connection re"):
		p.Class, p.Why = fault.Network, "can't be compiled, since a module could not be downloaded"
		p.Err = errors.New(lastLine(text))
	default:
		p.Why, p.Err = "could not be compiled", err
	}
	return p
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
