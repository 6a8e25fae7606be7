package guestos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MountBase mounts what every Linux program expects below root.
func MountBase(root string) error {
	for _, m := range []struct{ kind, dir string }{{"devtmpfs", "dev"}, {"proc", "proc"}, {"sysfs", "sys"}, {"tmpfs", "run"}, {"tmpfs", "tmp"}} {
		dir := filepath.Join(root, m.dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := Mount(m.kind, dir, m.kind, 0, ""); err != nil {
			return err
		}
	}
	return nil
}

// Mount mounts a file system; an error names what and where.
func Mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mounting %s on %s as %s: %w", source, target, kind, err)
	}
	return nil
}

// Unmount unmounts a file system.
func Unmount(target string) error {
	if err := unix.Unmount(target, 0); err != nil {
		return fmt.Errorf("unmounting %s: %w", target, err)
	}
	return nil
}

// LoadModules loads the modules that the file "order" in dir lists. One that is
// there already is no error.
func LoadModules(dir string) error {
	list, err := os.ReadFile(filepath.Join(dir, "order"))
	if err != nil {
		return fmt.Errorf("reading the list of modules: %w", err)
	}
	for _, path := range strings.Fields(string(list)) {
		file, err := os.Open(filepath.Join(filepath.Dir(dir), path))
		if err != nil {
			return fmt.Errorf("opening a module: %w", err)
		}
		err = unix.FinitModule(int(file.Fd()), "", 0)
		file.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("loading %s: %w", path, err)
		}
	}
	return nil
}

// SwitchRoot makes dir, a mounted file system, this process's root.
func SwitchRoot(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("switching the root: %w", err)
	}
	if err := unix.Mount(dir, "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("switching the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("switching the root: %w", err)
	}
	return os.Chdir("/")
}

// CommandLine returns the value of a parameter of the kernel's command line.
func CommandLine(name string) string {
	data, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return ""
	}
	for _, word := range strings.Fields(string(data)) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// BootTime returns when the kernel started, to the second.
func BootTime() (time.Time, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the boot time: %w", err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		var seconds int64
		if _, err := fmt.Sscanf(line, "btime %d", &seconds); err == nil {
			return time.Unix(seconds, 0).UTC(), nil
		}
	}
	return time.Time{}, errors.New("reading the boot time: the kernel does not tell it")
}

// poll calls check at once and then every interval until it is done or ctx ends.
func poll(ctx context.Context, interval time.Duration, check func() bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !check() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}
