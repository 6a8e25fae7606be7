package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// VerifyReproducible compiles what text was resolved to once more, in another
// folder and with an empty cache of the go command, and compares the digests.
// Other bytes are a *fault.Problem that names the files. It takes as long as a
// first compile.
func VerifyReproducible(ctx context.Context, text string, ref Ref, bits Bits, opts Options, sink report.Sink) error {
	if opts.Debug {
		return &fault.Problem{Class: fault.Usage, Field: "--verify-reproducible", Why: "can't be had with --debug: such programs hold the paths of their folder", Fix: "leave one of them out"}
	}
	dir, err := os.MkdirTemp(opts.CacheDir, "again-")
	if err != nil {
		return fmt.Errorf("making a folder for the second compile: %w", err)
	}
	defer os.RemoveAll(dir)
	sub := map[string]string{}
	for _, name := range []string{"cache", "out", "scratch"} {
		sub[name] = filepath.Join(dir, name)
		if err := os.Mkdir(sub[name], 0o755); err != nil {
			return fmt.Errorf("making a folder for the second compile: %w", err)
		}
	}
	opts.Env, opts.anew = append(slices.Clone(opts.Env), "GOCACHE="+sub["cache"]), true
	src, err := Parse(text, opts)
	if err != nil {
		return err
	}
	sink.Emit(report.Event{Kind: report.Note, Message: "compiling a second time, with an empty cache"})
	again, err := src.Fetch(ctx, ref, sub["out"], sub["scratch"], sink)
	if err != nil {
		return fmt.Errorf("compiling a second time: %w", err)
	}
	return compareBits(text, bits, again)
}

// compareBits says which programs differ.
func compareBits(text string, first, second Bits) error {
	digests := map[string]string{}
	for _, b := range first.Binaries {
		digests[b.File] = b.SHA256
	}
	var differ []string
	for _, b := range second.Binaries {
		if digests[b.File] != b.SHA256 {
			differ = append(differ, fmt.Sprintf("%s was %s and is %s", b.File, digests[b.File], b.SHA256))
		}
	}
	if len(differ) == 0 && len(first.Binaries) == len(second.Binaries) {
		return nil
	}
	return &fault.Problem{Class: fault.Failed, Field: field, Value: text, Why: fmt.Sprintf("is not reproducible: %q", differ), Fix: "compare the two with go version -m; a file that git ignores may take part"}
}
