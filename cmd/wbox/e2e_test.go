package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/cli"
	"github.com/wbox-dev/wbox/scripts/standin/media"
)

// bake is one folder with a medium, binaries, a store and an output folder.
type bake struct {
	t                *testing.T
	dir, iso, store  string
	out              string
	stdout, stderr   bytes.Buffer
	selection        []string
	powerShellInside bool
}

func newBake(t *testing.T, medium media.Options, selection ...string) *bake {
	t.Helper()
	if testing.Short() {
		t.Skip("boots virtual machines")
	}
	if missing := media.Missing(); len(missing) > 0 {
		t.Skipf("programs of the stand-in medium are missing: %v", missing)
	}
	t.Setenv("WBOX_WINE", "none") // the programs are run in kube's own tests
	iso, err := media.Cached(t.Context(), medium)
	if err != nil {
		t.Fatal(err)
	}
	// As most people name it: by a relative path.
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if iso, err = filepath.Rel(here, iso); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return &bake{t: t, dir: dir, iso: iso, store: filepath.Join(dir, "store"), out: filepath.Join(dir, "out put"),
		selection: selection, powerShellInside: medium.PowerShell != ""}
}

// powerShell returns the folder of a PowerShell for the stand-in, or skips.
func powerShell(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../scripts/dev/find-pwsh.sh", "--folder").Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no PowerShell, and CI=true wants one: %v", err)
		}
		t.Skip("no PowerShell 7: set WBOX_PWSH")
	}
	return strings.TrimSpace(string(out))
}

// build runs wbox build and returns what was published.
func (b *bake) build(args ...string) builder.Published {
	b.t.Helper()
	b.stdout.Reset()
	b.stderr.Reset()
	all := append([]string{"build", "--store", b.store, "--iso", b.iso, "-o", b.out, "--format", "json"}, b.selection...)
	code := cli.Main(context.Background(), append(all, args...), nil, &b.stdout, &b.stderr)
	if code != 0 {
		b.t.Fatalf("exit code %d\n%s", code, b.stderr.String())
	}
	var p builder.Published
	if err := json.Unmarshal(b.stdout.Bytes(), &p); err != nil {
		b.t.Fatalf("standard output %q: %v", b.stdout.String(), err)
	}
	if n := bytes.Count(b.stdout.Bytes(), []byte("\n")); n != 1 {
		b.t.Errorf("%d lines on standard output, want one", n)
	}
	return p
}

// manifest reads a manifest.
func (b *bake) manifest(p builder.Published) builder.Manifest {
	b.t.Helper()
	data, err := os.ReadFile(p.Manifest)
	if err != nil {
		b.t.Fatal(err)
	}
	var m builder.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		b.t.Fatal(err)
	}
	return m
}

func (b *bake) exes(version, variant string) string {
	b.t.Helper()
	dir := filepath.Join(b.dir, "exes-"+version+"-"+variant)
	if err := kubetest.BuildFixture(b.t.Context(), dir, version, variant); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte(version+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// TestBake is the whole chain on the stand-in guest with PowerShell.
func TestBake(t *testing.T) {
	if testing.Short() {
		t.Skip("boots virtual machines")
	}
	medium := media.Options{Release: "2022", PowerShell: powerShell(t), Containerd: containerdFolder(t)}
	b := newBake(t, medium, "--cni", "calico")
	name, digest := "", ""
	if medium.Containerd != "" {
		name, digest = b.preloadsPause()
	}

	p := b.build("--k8s", b.exes("v1.37.2", "a"))
	m := b.manifest(p)
	if p.Name != "local/wbox-ws2022-calico-stand-in" || p.Version != "1.37.2.0" || p.UpToDate || p.GuestScripts != "powershell" {
		t.Errorf("published %+v", p)
	}
	if m.Boots > 10 || m.Boots < 8 || !m.StandIn || m.Proof.Guest != "stand-in" {
		t.Errorf("manifest: %d boots, %+v", m.Boots, m.Proof)
	}
	b.noSecrets()
	b.licence(p, m, "activated")
	if name != "" && m.Inputs["image "+name] != digest {
		t.Errorf("the manifest says %q of the image %s, want %s", m.Inputs["image "+name], name, digest)
	}
	if name != "" && !b.provesImage(m, name+" "+digest) {
		t.Errorf("the proof does not know the image %s %s", name, digest)
	}

	if p := b.build("--k8s", b.exes("v1.37.2", "a")); !p.UpToDate || !strings.Contains(b.stderr.String(), "up to date") {
		t.Errorf("the second build was not up to date:\n%s", b.stderr.String())
	}

	// Another kubelet.exe of the same minor: no boot before the box, one for the proof.
	p = b.build("--k8s", b.exes("v1.37.3", "b"))
	for _, s := range b.manifest(p).Stages {
		changed := map[string]bool{"kube": true, "payload": true, "proof": true, "libvirt": true}[s.Stage]
		if s.Empty == "" && s.Hit == changed {
			t.Errorf("another kubelet.exe: stage %s hit=%v", s.Stage, s.Hit)
		}
	}

	// Another minor: the layers up to the CNI are hits.
	b.planHas("--k8s", b.exes("v1.36.3", "c"), map[string]string{"windows": "hit", "features": "hit", "runtime": "hit", "cni": "hit", "node": "miss"})
	b.vagrant(p)
}

// TestBakeWithoutPowerShell is the chain where the stand-in answers for the scripts.
func TestBakeWithoutPowerShell(t *testing.T) {
	b := newBake(t, media.Options{Release: "2025"}, "--windows", "2025", "--edition", "desktop", "--activate", "never")
	ci := []string{"--k8s", "ci/latest", "--kube-base-url", b.bucket("v1.36.3+0123456789abcd")}
	p := b.build(ci...)
	if p.Name != "local/wbox-ws2025-none-stand-in" || p.GuestScripts != "not executed" {
		t.Errorf("published %+v", p)
	}
	if n := strings.Count(b.stderr.String(), "guest scripts: not executed"); n != 2 {
		t.Errorf("told %d times that no script was executed, want before and after:\n%s", n, b.stderr.String())
	}
	m := b.manifest(p)
	if m.GuestScripts != "not executed" || m.Boots > 9 {
		t.Errorf("manifest: scripts %q, %d boots", m.GuestScripts, m.Boots)
	}
	b.licence(p, m, "not tried: --activate never")
	t.Run("faults", func(t *testing.T) { faults(t, b, p) })
	b.agesOut(8*24*time.Hour, ci...)
}

// bucket serves a CI build and the marker that names it.
func (b *bake) bucket(version string) string {
	b.t.Helper()
	bucket, err := kubetest.NewBucket(filepath.Join(b.dir, "bucket"))
	if err == nil {
		err = bucket.Publish(b.t.Context(), "ci", version, false)
	}
	if err == nil {
		err = bucket.Mark("ci/latest.txt", version, time.Now())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(bucket)
	b.t.Cleanup(server.Close)
	return server.URL
}

func (b *bake) planHas(k8sFlag, k8s string, want map[string]string) {
	b.t.Helper()
	b.stdout.Reset()
	args := append([]string{"plan", "--store", b.store, "--iso", b.iso, "--format", "json", k8sFlag, k8s}, b.selection...)
	if code := cli.Main(context.Background(), args, nil, &b.stdout, &b.stderr); code != 0 {
		b.t.Fatalf("plan: exit code %d\n%s", code, b.stderr.String())
	}
	var plan struct{ Stages []builder.PlanLine }
	if err := json.Unmarshal(b.stdout.Bytes(), &plan); err != nil {
		b.t.Fatal(err)
	}
	seen := 0
	for _, l := range plan.Stages {
		if w, ok := want[l.Stage]; ok {
			seen++
			if l.Status != w {
				b.t.Errorf("plan: %s is a %s, want %s", l.Stage, l.Status, w)
			}
		}
	}
	if seen != len(want) {
		b.t.Errorf("plan has %d of %d stages", seen, len(want))
	}
}

// noSecrets looks for the bake's password in everything that was written but
// its own file, in the forms in which it might slip out.
func (b *bake) noSecrets() {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.store, "results", "*", "access"))
	if err != nil || len(files) != 1 {
		b.t.Fatalf("files of the way in: %v, %v", files, err)
	}
	if fi, err := os.Stat(files[0]); err != nil || fi.Mode().Perm() != 0o600 {
		b.t.Errorf("the way in has mode %v, %v", fi.Mode(), err)
	}
	access, err := guest.LoadAccess(files[0])
	if err != nil {
		b.t.Fatal(err)
	}
	var forms [][]byte
	for _, secret := range []string{access.Password, access.PFXPassword} {
		var wide []byte
		for _, u := range utf16.Encode([]rune(secret)) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		forms = append(forms, []byte(secret), wide, []byte(base64.StdEncoding.EncodeToString([]byte(secret))),
			[]byte(base64.StdEncoding.EncodeToString(wide)))
	}
	for _, root := range []string{filepath.Join(b.store, "runs"), b.out} {
		b.grep(root, forms)
	}
	if keys, _ := filepath.Glob(filepath.Join(b.store, "results", "*", "*.json")); len(keys) == 0 {
		b.t.Error("no keys")
	} else {
		for _, k := range keys {
			b.grep(k, forms)
		}
	}
	if bytes.Contains(b.stderr.Bytes(), forms[0]) {
		b.t.Error("the bake's password is on standard error")
	}
}

func (b *bake) grep(root string, forms [][]byte) {
	b.t.Helper()
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, f := range forms {
			if bytes.Contains(data, f) {
				b.t.Errorf("a secret of the bake is in %s", p)
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// vagrant lets a real Vagrant add the box, list it, and refuse a wrong checksum.
func (b *bake) vagrant(p builder.Published) {
	b.t.Helper()
	if _, err := exec.LookPath("vagrant"); err != nil {
		b.t.Log("SKIPPED: vagrant is not installed")
		return
	}
	home := b.t.TempDir()
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(b.t.Context(), "vagrant", args...)
		cmd.Env = append(os.Environ(), "VAGRANT_HOME="+home, "VAGRANT_CHECKPOINT_DISABLE=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	data, err := os.ReadFile(p.Catalog)
	if err != nil {
		b.t.Fatal(err)
	}
	digit := map[bool]string{true: "1", false: "0"}[p.SHA256[0] == '0']
	wrong := filepath.Join(b.t.TempDir(), "catalog.json")
	if err := os.WriteFile(wrong, bytes.ReplaceAll(data, []byte(p.SHA256), []byte(digit+p.SHA256[1:])), 0o644); err != nil {
		b.t.Fatal(err)
	}
	if out, err := run("box", "add", wrong); err == nil || !strings.Contains(out, "checksum") {
		b.t.Errorf("a wrong checksum was taken: %v\n%s", err, out)
	}
	if out, err := run("box", "add", p.Catalog); err != nil {
		b.t.Fatalf("vagrant box add: %v\n%s", err, out)
	}
	if out, err := run("box", "list", "-i"); err != nil || !strings.Contains(out, p.Name) || !strings.Contains(out, p.Version) || !strings.Contains(out, "v1.37.3") || !strings.Contains(out, "evaluation, activated: evaluation ends") {
		b.t.Errorf("vagrant box list: %v\n%s", err, out)
	}
}
