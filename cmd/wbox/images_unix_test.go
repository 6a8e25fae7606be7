//go:build unix

package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// Ctrl-C in the middle of a mirror: exit code 130, and no tag that is not whole.
// Run again, it completes.
func TestInterruptedMirror(t *testing.T) {
	source, mirror := imagestest.New(), imagestest.New()
	defer source.Close()
	defer mirror.Close()
	tags := []string{"kube-apiserver:v1.37.2", "kube-controller-manager:v1.37.2", "kube-scheduler:v1.37.2", "kube-proxy:v1.37.2",
		"coredns/coredns:" + kubetest.CoreDNS, "pause:" + kubetest.Pause, "etcd:" + kubetest.Etcd}
	for i, name := range tags {
		if _, err := source.Push(t.Context(), name, imagestest.Spec{Layers: 3, Size: 3000, Seed: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	env, err := kubetest.Proxy(t.TempDir(), kubetest.Release{Version: "v1.37.2", GoVersion: strings.TrimPrefix(runtime.Version(), "go")})
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	var out bytes.Buffer
	run := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainAsAChild$")
		cmd.Env = append(append(os.Environ(), env...), "DOCKER_CONFIG="+store,
			childArgs+"=images mirror --k8s v1.37.2 --to "+mirror.Host+"/k8s --release-registry "+source.Host+" --store "+store)
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd
	}
	cmd := run()
	uploads, once, ended := 0, sync.Once{}, make(chan struct{})
	var mu sync.Mutex
	mirror.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/") {
			if uploads++; uploads == 5 {
				once.Do(func() { _ = cmd.Process.Signal(syscall.SIGINT) })
			}
			if uploads >= 5 { // what is under way doesn't end before the program does
				mu.Unlock()
				<-ended
				mu.Lock()
			}
		}
		return false
	})
	err = cmd.Run()
	close(ended)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("got %v, want exit code 130\n%s", err, out.String())
	}
	if n := mirror.Count("PUT", "/manifests/"); n != 0 {
		t.Errorf("%d manifests were written before all blobs were there", n)
	}
	mirror.Fail(nil)
	out.Reset()
	if err := run().Run(); err != nil || strings.Count(out.String(), " copied\n") != 8 {
		t.Errorf("the second run: %v\n%s", err, out.String())
	}
}
