package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/exec"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/internal/wine"
)

// wineDeadline bounds one run: the first one sets up the prefix, which takes
// 15 s on a busy machine; later ones take a second.
const wineDeadline = 3 * time.Minute

// errCantRun says that it is this machine that can't run a Windows program.
var errCantRun = errors.New("no Windows program can be run")

// runWindows runs a Windows program and returns what it prints: directly on
// Windows, elsewhere under wine, with a prefix of its own in cacheDir. Where
// there is no wine, or none that works, the error is errCantRun.
func runWindows(ctx context.Context, cacheDir, exe string, args ...string) (string, error) {
	exe, err := filepath.Abs(exe)
	if err != nil {
		return "", err
	}
	cmd, stop := exec.Command{Program: exe, Args: args}, func() {}
	if runtime.GOOS != "windows" {
		prefix, err := openWine(ctx, cacheDir)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errCantRun, err)
		}
		cmd, stop = prefix.Command(exe, args...), prefix.Stop
	}
	limited, cancel := context.WithTimeout(ctx, wineDeadline)
	defer cancel()
	out, err := exec.Run(limited, cmd)
	if limited.Err() != nil {
		stop()
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%w: %s did not end within %s", errCantRun, filepath.Base(exe), wineDeadline)
	}
	return string(out), err
}

// openWine sets up wine's folder, which one process does at a time.
func openWine(ctx context.Context, cacheDir string) (*wine.Prefix, error) {
	if _, err := wine.Find(); err != nil {
		return nil, err
	}
	if cacheDir == "" {
		return nil, errors.New("there is no folder to keep wine's files in")
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for wine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, wineDeadline)
	defer cancel()
	dir := filepath.Join(cacheDir, "wine")
	unlock, err := gosource.WaitForLock(ctx, dir+".lock", nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	prefix, err := wine.Open(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir)) // half a folder is 700 MB for nothing
	}
	return prefix, nil
}
