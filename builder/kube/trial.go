package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// tryOut runs the programs that say what they are, where Windows programs can
// be run: kubelet.exe must print the version of the ref, kubeadm.exe the images
// of a cluster. What was run once is not run again. Programs that are not ours
// (a folder's) are warned of only; the others are refused.
func (o Options) tryOut(ctx context.Context, bits Bits, dir string, ours bool, sink report.Sink) error {
	for _, b := range bits.Binaries {
		args := trialOf(b.File, bits.Ref.Version)
		if args == nil {
			continue
		}
		out, err := o.ask(ctx, filepath.Join(dir, b.File), b.SHA256, args...)
		if ctx.Err() != nil {
			return fmt.Errorf("running %s: %w", b.File, ctx.Err())
		}
		if errors.Is(err, errCantRun) {
			sink.Emit(report.Event{Kind: report.Note, Message: "not run to see what it says: " + b.File + ": " + err.Error()})
			return nil // nor can the others be
		}
		if err == nil && b.Name == Kubelet {
			err = printsVersion(out, bits.Ref.Version)
		}
		switch {
		case err == nil:
		case !ours:
			sink.Emit(report.Event{Kind: report.Warning, Message: fmt.Sprintf("%s %s: %v", b.From, strings.Join(args, " "), err)})
		default:
			return &fault.Problem{Class: fault.Input, Field: field, Value: bits.Ref.Version, Why: "gives a " + b.File + " that fails when it is run (" + strings.Join(args, " ") + ")", Err: err,
				Fix: "give another version; if it is wine that fails, switch it off with WBOX_WINE=none"}
		}
	}
	return nil
}

// trialOf returns the arguments with which a program is tried out, nil for one
// that is not.
func trialOf(file, version string) []string {
	switch file {
	case Kubelet + ".exe":
		return []string{"--version"}
	case Kubeadm + ".exe": // with a version it asks no server for one
		return []string{"config", "images", "list", "--kubernetes-version", version}
	}
	return nil
}

// printsVersion says what is wrong with what kubelet.exe --version printed.
func printsVersion(out, version string) error {
	v, err := printedVersion(out)
	if err == nil && v != version {
		err = fmt.Errorf("it says that it is %s, not %s", v, version)
	}
	return err
}

// ask returns what a program prints, from an earlier run of the same program
// with the same arguments if there was one.
func (o Options) ask(ctx context.Context, exe, digest string, args ...string) (string, error) {
	sum := sha256.Sum256([]byte(digest + "\x00" + strings.Join(args, "\x00")))
	kept := filepath.Join(o.CacheDir, "said", hex.EncodeToString(sum[:]))
	if o.CacheDir != "" {
		if data, err := gosource.ReadSome(kept, 1<<20); err == nil {
			return string(data), nil
		}
	}
	out, err := runWindows(ctx, o.CacheDir, exe, args...)
	if err != nil || o.CacheDir == "" {
		return out, err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return "", fmt.Errorf("keeping what %s says: %w", filepath.Base(exe), err)
	}
	if err := atomicfile.Write(ctx, kept, []byte(out), 0o644); err != nil {
		return "", fmt.Errorf("keeping what %s says: %w", filepath.Base(exe), err)
	}
	return out, nil
}
