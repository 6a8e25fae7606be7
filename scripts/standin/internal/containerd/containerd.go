// Package containerd runs Debian's containerd and ctr where the medium has them:
// the one part of a node that works on images is real, on Linux, with Windows'
// images as content that nobody unpacks. It knows nothing of the agent and must
// not import it.
package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/programs"
)

// Folder is where the medium puts the programs in the guest.
const Folder = "/opt/containerd"

// patience is how long containerd may take until it answers, in an emulator.
const patience = 2 * time.Minute

// Runtime is containerd of one boot, started when it is first asked for. It is
// safe for concurrent use.
type Runtime struct {
	Programs string                           // the folder of containerd and ctr
	Root     string                           // the folder of images, kept over boots
	State    string                           // a folder that a boot may forget
	Logf     func(format string, args ...any) // what the console shows

	mu      sync.Mutex
	started *exec.Cmd
	ended   chan struct{} // closed when it is gone
	log     tail
}

// Find returns the runtime of this guest, nil where the medium has none.
func Find(c string, logf func(string, ...any)) *Runtime {
	if _, err := os.Stat(filepath.Join(Folder, "ctr")); err != nil {
		return nil
	}
	return &Runtime{Programs: Folder, Root: filepath.Join(c, "ProgramData", "containerd", "root"), State: "/run/containerd", Logf: logf}
}

// config lets containerd do what images need and nothing else: what it is not
// told to leave out would look for mounts, networks and control groups.
func (r *Runtime) config() string {
	plugins := []string{"io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", "io.containerd.monitor.v1.cgroups",
		"io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
		"io.containerd.tracing.processor.v1.otlp"}
	return fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"%s\"]\n[grpc]\n  address = %q\n",
		r.Root, r.State, strings.Join(plugins, `", "`), r.socket())
}

func (r *Runtime) socket() string { return filepath.Join(r.State, "containerd.sock") }

// Ctr runs ctr and returns what it said.
func (r *Runtime) Ctr(ctx context.Context, args []string) programs.Result {
	if err := r.start(ctx); err != nil {
		return programs.Result{Exit: 1, Stderr: "ctr: " + err.Error() + "\n"}
	}
	return r.run(ctx, args)
}

func (r *Runtime) run(ctx context.Context, args []string) programs.Result {
	cmd := exec.CommandContext(ctx, filepath.Join(r.Programs, "ctr"), append([]string{"--address", r.socket()}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	out := programs.Result{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		out.Exit = exit.ExitCode()
	case err != nil:
		out.Exit, out.Stderr = 1, "ctr: "+err.Error()+"\n"
	}
	return out
}

// start starts containerd where it does not run, and waits until it answers.
func (r *Runtime) start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started != nil {
		select {
		case <-r.ended:
			r.started = nil // it died: try again, as the service manager does
		default:
			return nil
		}
	}
	for _, dir := range []string{r.Root, r.State} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	file := filepath.Join(r.State, "config.toml")
	if err := os.WriteFile(file, []byte(r.config()), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(r.Programs, "containerd"), "--config", file) // it outlives the request
	cmd.Stdout, cmd.Stderr = &r.log, &r.log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		err := cmd.Wait()
		r.Logf("containerd ended: %v", err)
		close(ended)
	}()
	r.started, r.ended = cmd, ended
	return r.wait(ctx)
}

func (r *Runtime) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		if r.run(ctx, []string{"version"}).Exit == 0 {
			return nil
		}
		select {
		case <-r.ended:
			return fmt.Errorf("containerd ended: %s", r.log.String())
		case <-ctx.Done():
			return fmt.Errorf("containerd does not answer (%w): %s", ctx.Err(), r.log.String())
		case <-ticker.C:
		}
	}
}

// Stop ends containerd, where it runs.
func (r *Runtime) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started == nil {
		return
	}
	_ = r.started.Process.Signal(os.Interrupt)
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		_ = r.started.Process.Kill()
		<-r.ended
	}
	r.started = nil
}

// tail keeps the last lines of a log.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write adds to the log.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 2000
	if t.text = append(t.text, b...); len(t.text) > most {
		t.text = bytes.Clone(t.text[len(t.text)-most:])
	}
	return len(b), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
