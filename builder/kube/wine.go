package kube

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/exec"
	"github.com/wbox-dev/wbox/builder/internal/wine"
)

// wineDeadline bounds one run: the first one sets up the prefix, which takes
// 15 s on a busy machine; later ones take a second.
const wineDeadline = 3 * time.Minute

// runWindows runs a Windows program and returns what it prints: directly on
// Windows, elsewhere under wine, if there is one, with a prefix of its own in
// cacheDir.
func runWindows(ctx context.Context, cacheDir, exe string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wineDeadline)
	defer cancel()
	exe, err := filepath.Abs(exe)
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		out, err := exec.Run(ctx, exec.Command{Program: exe, Args: args})
		return string(out), err
	}
	if _, err := wine.Find(); err != nil {
		return "", errors.New("there is no wine to ask kubelet.exe itself with")
	}
	if cacheDir == "" {
		return "", errors.New("there is no folder to keep wine's files in")
	}
	prefix, err := wine.Open(ctx, filepath.Join(cacheDir, "wine"))
	if err != nil {
		return "", err
	}
	out, err := exec.Run(ctx, prefix.Command(exe, args...))
	return string(out), err
}
