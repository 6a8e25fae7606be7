//go:build linux

package faulttest

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

// TestHackAndRepeat is what a developer and a nightly job do: a box of a source
// tree with changes in it, another after one more change, and one of what
// ci/latest names. The layers are made once.
func TestHackAndRepeat(t *testing.T) {
	if testing.Short() {
		t.Skip("runs builds for half a minute")
	}
	for _, tool := range []string{"qemu-img", "qemu-io", "go", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	layout, medium, tree := filepath.Join(dir, "layout.qcow2"), filepath.Join(dir, "stand-in.iso"), filepath.Join(dir, "kubernetes")
	must(writeLayout(t.Context(), layout))
	must(isotest.WriteFake(medium, isotest.Editions("2022"), &iso.StandIn{StandIn: true, Version: "1"}))
	_, err := kubetest.Repo(t.Context(), tree, strings.TrimPrefix(runtime.Version(), "go"))
	must(err)
	bucket, err := kubetest.NewBucket(filepath.Join(dir, "bucket"))
	must(err)
	const nightly = "v1.38.0-alpha.0.7+0123456789abcd"
	must(bucket.Publish(t.Context(), "ci", nightly, false))
	must(bucket.Mark("ci/latest.txt", nightly, time.Now()))
	server := httptest.NewServer(bucket)
	defer server.Close()

	w := &Wbox{Program: []string{os.Args[0]}, Store: filepath.Join(dir, "store"), Out: filepath.Join(dir, "out"), Tmp: filepath.Join(dir, "tmp"),
		Selection: []string{"--iso", medium, "--cni", "calico", "--disk", strconv.Itoa(diskGiB), "--format", "json", "--kube-base-url", server.URL},
		Env:       []string{layoutEnv + "=" + layout, journalEnv + "=" + filepath.Join(dir, "seeds"), "WBOX_WINE=none"}, journal: filepath.Join(dir, "seeds")}
	must(os.Mkdir(w.Tmp, 0o755))
	edit := func() {
		t.Helper()
		path := filepath.Join(tree, "cmd", "kubelet", "kubelet.go")
		data, err := os.ReadFile(path)
		must(err)
		must(os.WriteFile(path, append(data, "\nfunc init() { variant += \"changed\" }\n"...), 0o644))
	}
	build := func(args ...string) (builder.Published, map[string]bool) {
		t.Helper()
		e := w.Build(t, nil, args...)
		if e.Code != 0 {
			t.Fatalf("exit code %d: %s", e.Code, e.Stderr)
		}
		var p builder.Published
		must(json.Unmarshal([]byte(e.Stdout), &p))
		data, err := os.ReadFile(p.Manifest)
		must(err)
		var m builder.Manifest
		must(json.Unmarshal(data, &m))
		ran := map[string]bool{}
		for _, s := range m.Stages {
			if s.Empty == "" {
				ran[s.Stage] = !s.Hit
			}
		}
		return p, ran
	}
	edit()
	if p, ran := build("--k8s", tree); !strings.HasPrefix(p.Version, "1.38.0-alpha.0.2.") || !ran["windows"] || !ran["kube"] {
		t.Errorf("the first: %+v, ran %v", p, ran)
	}
	if p, _ := build("--k8s", tree); !p.UpToDate {
		t.Errorf("nothing changed: %+v", p)
	}
	onlyBinaries := func(what string, ran map[string]bool) {
		t.Helper()
		for stage, did := range ran {
			if want := map[string]bool{"kube": true, "payload": true, "proof": true, "libvirt": true}[stage]; did != want {
				t.Errorf("%s: stage %s ran: %v", what, stage, did)
			}
		}
		if len(ran) < 8 {
			t.Errorf("%s: ran %v", what, ran)
		}
	}
	edit()
	_, ran := build("--k8s", tree, "--revision", "1")
	onlyBinaries("one file changed", ran)
	p, ran := build("--k8s", "ci/latest")
	onlyBinaries("ci/latest", ran)
	if p.Version != "1.38.0-alpha.0.7.0" {
		t.Errorf("ci/latest: %+v", p)
	}
}
