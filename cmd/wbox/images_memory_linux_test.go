package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// TestMirrorMemory mirrors layers of 200 MiB from one registry to another: the
// program must not need more than 64 MiB, however large an image is.
func TestMirrorMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 400 MiB")
	}
	if !imagestest.HasDocker() {
		t.Skip("docker-registry is not installed (apt-get install docker-registry)")
	}
	ctx := context.WithoutCancel(t.Context())
	var hosts []string
	for range 2 {
		d, err := imagestest.StartDocker(ctx, t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Stop)
		hosts = append(hosts, d.Host)
	}
	front := imagestest.InFront(hosts[0])
	defer front.Close()
	for i, name := range []string{"kube-apiserver:v1.37.2", "kube-controller-manager:v1.37.2", "kube-scheduler:v1.37.2", "kube-proxy:v1.37.2",
		"coredns/coredns:" + kubetest.CoreDNS, "pause:" + kubetest.Pause, "etcd:" + kubetest.Etcd} {
		s := imagestest.Spec{Layers: 2, Size: 1 << 20, Seed: uint64(i), Uncompressed: true}
		if i < 2 {
			s.Layers, s.Size = 1, 200<<20
		}
		if _, err := front.Push(ctx, name, s); err != nil {
			t.Fatal(err)
		}
	}
	env, err := kubetest.Proxy(t.TempDir(), kubetest.Release{Version: "v1.37.2", GoVersion: strings.TrimPrefix(runtime.Version(), "go")})
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "wbox")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building wbox: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, bin, "images", "mirror", "--k8s", "v1.37.2", "--to", hosts[1]+"/k8s", "--release-registry", hosts[0], "--store", t.TempDir())
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	most := 0
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("mirroring: %v\n%s", err, out.String())
			}
			running = false
		case <-tick.C:
			most = max(most, highWater(cmd.Process.Pid))
		}
	}
	t.Logf("%d KiB at most, in %v\n%s", most, time.Since(start).Round(time.Millisecond), out.String())
	if most == 0 || most > 64<<10 {
		t.Errorf("the most memory that was used is %d KiB, want no more than %d", most, 64<<10)
	}
}

// highWater is the most memory in KiB that a process has had so far.
func highWater(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var n int
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &n); err == nil {
			return n
		}
	}
	return 0
}
