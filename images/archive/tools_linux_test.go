package archive

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startContainerd starts one of its own, with everything in a folder of its own,
// and returns its socket.
func startContainerd(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts containerd")
	}
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	tool(t, "ctr", "containerd")
	dir, err := os.MkdirTemp("", "wbctr") // short: the name of a socket may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "c.sock")
	config := "version = 2\nroot = \"" + dir + "/root\"\nstate = \"" + dir + "/state\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n" +
		"[grpc]\naddress = \"" + socket + "\"\n"
	if err := os.WriteFile(dir+"/config.toml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool(t, "containerd", "containerd"), "--config", dir+"/config.toml")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		log.Close()
	})
	for deadline := time.Now().Add(30 * time.Second); ; {
		if exec.CommandContext(t.Context(), "ctr", "--address", socket, "version").Run() == nil {
			return socket
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(dir + "/log")
			t.Fatalf("containerd does not answer:\n%s", text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func ctr(t *testing.T, socket string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ctr", append([]string{"--address", socket, "-n", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ctr %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// imported returns the digests of the images that containerd has.
func imported(t *testing.T, socket string) map[string]string {
	t.Helper()
	have := map[string]string{}
	for _, line := range strings.Split(ctr(t, socket, "images", "ls"), "\n") {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[2], "sha256:") {
			have[f[0]] = f[2]
		}
	}
	return have
}

// TestContainerdImports imports what was saved, as it is, and compares digests;
// the files of the image are then there.
func TestContainerdImports(t *testing.T) {
	socket := startContainerd(t)
	entries, _, _ := linuxEntries(t)
	for what, opts := range map[string]Options{"one platform": {Platforms: amd64()}, "all platforms": {}} {
		path := filepath.Join(t.TempDir(), "images.tar")
		saved, err := Save(t.Context(), path, entries, opts)
		if err != nil {
			t.Fatal(err)
		}
		ctr(t, socket, "images", "import", "--snapshotter", "native", path)
		have := imported(t, socket)
		for _, s := range saved {
			if have[s.Names[0]] != s.Digest {
				t.Errorf("%s: %s is %s, saved was %s", what, s.Names[0], have[s.Names[0]], s.Digest)
			}
		}
		if out := ctr(t, socket, "images", "check", "--snapshotter", "native"); strings.Count(out, " complete ") != len(saved) || strings.Contains(out, "false") {
			t.Errorf("%s: %s", what, out)
		}
		for _, s := range saved {
			ctr(t, socket, "images", "rm", "--sync", s.Names[0])
		}
	}
}

// A HostProcess image is imported on Linux too, without unpacking: that takes
// Windows.
func TestContainerdImportsWindows(t *testing.T) {
	socket := startContainerd(t)
	name, img := windowsImage(t)
	path := filepath.Join(t.TempDir(), "images.tar")
	if _, err := Save(t.Context(), path, []Entry{built(name, img)}, Options{}); err != nil {
		t.Fatal(err)
	}
	ctr(t, socket, "images", "import", "--no-unpack", "--all-platforms", path)
	if got := imported(t, socket)[name]; got != digestOf(t, img) {
		t.Errorf("imported %q, saved %s", got, digestOf(t, img))
	}
}

// skopeo reads the archive in both forms and gives the same digests.
func TestSkopeoAgrees(t *testing.T) {
	skopeo := tool(t, "skopeo", "skopeo")
	if testing.Short() {
		t.Skip("starts skopeo")
	}
	entries, _, proxy := linuxEntries(t)
	path := filepath.Join(t.TempDir(), "images.tar")
	if _, err := Save(t.Context(), path, entries, Options{Platforms: amd64()}); err != nil {
		t.Fatal(err)
	}
	inspect := func(args ...string) map[string]any {
		cmd := exec.CommandContext(t.Context(), skopeo, append([]string{"inspect"}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("skopeo inspect %v: %s", args, exit.Stderr)
		}
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("skopeo inspect %v: %v\n%s", args, err, out)
		}
		return got
	}
	got := inspect("oci-archive:" + path + ":" + proxyName)
	if got["Digest"] != digestOf(t, proxy) {
		t.Errorf("skopeo says %v of the OCI form, want %s", got["Digest"], digestOf(t, proxy))
	}
	got = inspect("--config", "docker-archive:"+path+":"+proxyName)
	if got["architecture"] != "amd64" || got["os"] != "linux" {
		t.Errorf("skopeo says %v of the docker form", got)
	}
}
