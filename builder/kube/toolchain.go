package kube

import (
	"context"
	"fmt"
	"go/version"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// toolchainDeadline bounds the download of a toolchain (about 70 MB).
const toolchainDeadline = 5 * time.Minute

// toolchain chooses what compiles a tree: the one that its official build uses,
// which the go command gets through the module proxy, else the go command's own
// if it is new enough. The choice is part of the Ref; a build uses that and no
// other.
func (g *goTool) toolchain(ctx context.Context, dir string, t *tree, sink report.Sink) (string, error) {
	why := "it does not say which toolchain it is built with"
	if t.pinned != "" {
		if t.pinned == g.version {
			return t.pinned, nil
		}
		err := g.try(ctx, dir, t.pinned)
		if err == nil {
			return t.pinned, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("getting %s: %w", t.pinned, ctx.Err())
		}
		why = "it is officially built with " + t.pinned + ", which could not be downloaded"
	}
	if version.Compare(g.version, t.golang) < 0 {
		return "", &fault.Problem{Class: fault.Host, Field: "go", Value: g.version, Why: "is too old to compile this Kubernetes, and " + why,
			Fix: "install " + t.golang + " or newer (https://go.dev/dl)"}
	}
	sink.Emit(report.Event{Kind: report.Warning, Message: "compiling with " + g.version + " of this machine: " + why})
	return g.version, nil
}

// try makes sure that a toolchain is there, downloaded if need be.
func (g *goTool) try(ctx context.Context, dir, toolchain string) error {
	ctx, cancel := context.WithTimeout(ctx, toolchainDeadline)
	defer cancel()
	out, err := g.run(ctx, dir, []string{"GOTOOLCHAIN=" + toolchain, "GOWORK=off"}, nil, "env", "GOVERSION")
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(out)); got != toolchain {
		return fmt.Errorf("asked for %s, got %s", toolchain, got)
	}
	return nil
}
