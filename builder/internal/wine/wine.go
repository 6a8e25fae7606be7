// Package wine runs Windows programs on systems that are not Windows, as far
// as wine can: with a prefix of wbox's own, without a display, and with the one
// library that Go programs need and older wines lack. It must not import
// anything of ours but the runner of programs.
package wine

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// Prefix is a folder in which wine keeps its drives and its registry, set up
// for Go programs.
type Prefix struct {
	wine string
	env  []string
}

// Variable names the environment variable that says which wine to use: its
// path, or "none".
const Variable = "WBOX_WINE"

// Find returns the path of wine, as Variable says, else the first that there
// is. Debian's wine64 package has it outside of PATH.
func Find() (string, error) {
	switch name := os.Getenv(Variable); name {
	case "":
	case "none":
		return "", errors.New(Variable + " says that there is no wine")
	default:
		path, err := osexec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s names a wine that can't be run: %w", Variable, err)
		}
		return path, nil
	}
	for _, name := range []string{"wine64", "wine", "/usr/lib/wine/wine64"} {
		if path, err := osexec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no wine")
}

// Open finds wine and sets up the prefix dir unless it is there. The first time
// takes 2 s on a quiet machine and 15 s on a busy one.
func Open(ctx context.Context, dir string) (*Prefix, error) {
	wine, err := Find()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	p := &Prefix{wine, environ(os.Environ(), dir)}
	if err := p.setUp(ctx, dir); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// stopPatience is how long wine may take to end what it runs.
const stopPatience = 10 * time.Second

// Stop ends all programs of the prefix. Wine's own are no children of whoever
// started it: without this they outlive a run that was cut off, and some go
// round in circles once their folder is gone.
func (p *Prefix) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	dir := filepath.Dir(p.wine)
	for _, server := range []string{filepath.Join(dir, "wineserver64"), filepath.Join(dir, "wineserver"), "wineserver64", "wineserver", "/usr/lib/wine/wineserver64"} {
		if path, err := osexec.LookPath(server); err == nil {
			_, _ = exec.Run(ctx, exec.Command{Program: path, Args: []string{"-k"}, Env: p.env}) // it says no where nothing runs
			return
		}
	}
}

// Command is what runs a Windows program: exe is its path on this system.
func (p *Prefix) Command(exe string, args ...string) exec.Command {
	return exec.Command{Program: p.wine, Args: append([]string{exe}, args...), Env: p.env}
}

// environ is the environment of wine: no display, no messages, no offers to
// install .NET or a browser. Its server leaves a folder with its socket in TMPDIR
// for good, so that lies in the prefix. Where wine's parts lie is left to the user.
func environ(given []string, prefix string) []string {
	var env []string
	for _, kv := range given {
		if key, _, _ := strings.Cut(kv, "="); !slices.Contains([]string{"WINEARCH", "DISPLAY", "TMPDIR"}, key) {
			env = append(env, kv)
		}
	}
	return append(env, "TMPDIR="+prefix, "WINEPREFIX="+prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=")
}

// setUp makes the prefix and puts into it the library that Go programs need and
// older wines lack (Debian 12 has wine 8.0): bcryptprimitives.dll.
func (p *Prefix) setUp(ctx context.Context, dir string) error {
	system := filepath.Join(dir, "drive_c", "windows", "system32")
	dll := filepath.Join(system, "bcryptprimitives.dll")
	if _, err := os.Stat(dll); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making wine's folder: %w", err)
	}
	if _, err := exec.Run(ctx, p.Command("wineboot", "--init")); err != nil {
		return fmt.Errorf("setting up wine: %w", err)
	}
	if _, err := os.Stat(system); err != nil {
		return fmt.Errorf("setting up wine: %w", err)
	}
	if _, err := os.Stat(dll); err == nil { // a newer wine brings its own
		return nil
	}
	if err := os.WriteFile(dll, PrngDLL(), 0o644); err != nil {
		return fmt.Errorf("completing wine's libraries: %w", err)
	}
	return nil
}
