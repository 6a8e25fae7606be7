//go:build unix

package kube

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

// A folder may hold anything under the names that matter: a pipe must not be
// waited for, nor an endless device read.
func TestDirRefusesWhatIsNoFile(t *testing.T) {
	pipe := func(path string) error { return unix.Mkfifo(path, 0o600) }
	link := func(to string) func(string) error { return func(path string) error { return os.Symlink(to, path) } }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	for _, tt := range []struct {
		name, file string
		make       func(string) error
		says       string
	}{
		{"program is a pipe", "kubelet.exe", pipe, "kubelet.exe: is refused: it is no regular file"},
		{"program is a device", "kubelet.exe", link("/dev/zero"), "kubelet.exe: is refused: it is no regular file"},
		{"program is a folder", "kubelet.exe", folder, "kubelet.exe: is refused: it is no regular file"},
		{"program leads nowhere", "kubelet.exe", link("nowhere"), "kubelet.exe: is refused: stat "},
		{"version is a pipe", "version", pipe, "version: can't be read: it is no regular file"},
		{"version is a device", "version", link("/dev/zero"), "version: can't be read: it is no regular file"},
		{"version is a folder", "version", folder, "version: can't be read: it is no regular file"},
		{"go.mod is a pipe", "go.mod", pipe, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := kubetest.Fixture(t, t.TempDir(), "v1.37.2")
			opts := Options{}
			if tt.file != "version" {
				opts.Version = "v1.37.2"
			}
			path := filepath.Join(dir, tt.file)
			os.Remove(path)
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			go func() {
				_, err := mustDir(t, dir, opts).Resolve(ctx, report.Discard)
				done <- err
			}()
			select {
			case err := <-done:
				switch {
				case tt.says == "" && err != nil:
					t.Errorf("got %v", err)
				case tt.says != "" && (fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), tt.says)):
					t.Errorf("got %v, want it to say %q", err, tt.says)
				}
			case <-ctx.Done():
				t.Fatal("it waits for ever")
			}
		})
	}
}
