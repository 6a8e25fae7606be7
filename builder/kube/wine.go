package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
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
		out, err := gosource.Command{Argv: append([]string{exe}, args...), Env: os.Environ()}.Run(ctx)
		return string(out), err
	}
	wine, err := findWine()
	if err != nil {
		return "", err
	}
	if cacheDir == "" {
		return "", errors.New("there is no folder to keep wine's files in")
	}
	prefix, err := filepath.Abs(filepath.Join(cacheDir, "wine"))
	if err != nil {
		return "", err
	}
	env := wineEnv(os.Environ(), prefix)
	if err := setUpPrefix(ctx, wine, prefix, env); err != nil {
		return "", err
	}
	out, err := gosource.Command{Argv: append([]string{wine, exe}, args...), Env: env}.Run(ctx)
	return string(out), err
}

// findWine returns the path of wine. Debian's wine64 package has it outside of PATH.
func findWine() (string, error) {
	for _, name := range []string{"wine64", "wine", "/usr/lib/wine/wine64"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no wine to ask kubelet.exe itself with")
}

// wineEnv is the environment of wine: no display, no messages, no offers to
// install .NET or a browser. Where its parts lie is left to the user.
func wineEnv(environ []string, prefix string) []string {
	var env []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "WINEARCH=") && !strings.HasPrefix(kv, "DISPLAY=") {
			env = append(env, kv)
		}
	}
	return append(env, "WINEPREFIX="+prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=")
}

// setUpPrefix makes the prefix and puts into it the library that Go programs
// need and older wines lack (Debian 12 has wine 8.0): bcryptprimitives.dll.
func setUpPrefix(ctx context.Context, wine, prefix string, env []string) error {
	system := filepath.Join(prefix, "drive_c", "windows", "system32")
	dll := filepath.Join(system, "bcryptprimitives.dll")
	if _, err := os.Stat(dll); err == nil {
		return nil
	}
	if err := os.MkdirAll(prefix, 0o755); err != nil {
		return fmt.Errorf("making wine's folder: %w", err)
	}
	if _, err := (gosource.Command{Argv: []string{wine, "wineboot", "--init"}, Env: env}).Run(ctx); err != nil {
		return fmt.Errorf("setting up wine: %w", err)
	}
	if _, err := os.Stat(system); err != nil {
		return fmt.Errorf("setting up wine: %w", err)
	}
	if _, err := os.Stat(dll); err == nil { // a newer wine brings its own
		return nil
	}
	if err := os.WriteFile(dll, processPrngDLL(), 0o644); err != nil {
		return fmt.Errorf("completing wine's libraries: %w", err)
	}
	return nil
}
