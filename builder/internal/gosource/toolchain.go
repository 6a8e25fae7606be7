package gosource

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

// Toolchain chooses what compiles a tree: the one that its official build uses,
// which the go command gets through the module proxy, else the go command's own
// if it is new enough. The choice is part of the Ref; a build uses that and no
// other.
func (g *GoTool) Toolchain(ctx context.Context, dir, pinned, needs string, sink report.Sink) (string, error) {
	why := "it does not say which toolchain it is built with"
	if pinned != "" {
		if pinned == g.Version {
			return pinned, nil
		}
		err := g.Try(ctx, dir, pinned)
		if err == nil {
			return pinned, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("getting %s: %w", pinned, ctx.Err())
		}
		why = "it is officially built with " + pinned + ", which could not be downloaded"
	}
	if version.Compare(g.Version, needs) < 0 {
		return "", &fault.Problem{Class: fault.Host, Field: "go", Value: g.Version, Why: "is too old to compile this " + g.set.What + ", and " + why,
			Fix: "install " + needs + " or newer (https://go.dev/dl)"}
	}
	sink.Emit(report.Event{Kind: report.Warning, Message: "compiling with " + g.Version + " of this machine: " + why})
	return g.Version, nil
}

// Try makes sure that a toolchain is there, downloaded if need be.
func (g *GoTool) Try(ctx context.Context, dir, toolchain string) error {
	ctx, cancel := context.WithTimeout(ctx, toolchainDeadline)
	defer cancel()
	out, err := g.Run(ctx, dir, []string{"GOTOOLCHAIN=" + toolchain, "GOWORK=off"}, nil, "env", "GOVERSION")
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(out)); got != toolchain {
		return fmt.Errorf("asked for %s, got %s", toolchain, got)
	}
	return nil
}
