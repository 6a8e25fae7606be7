package builder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/proof"
)

func TestCheckOutput(t *testing.T) {
	at := func(parts ...string) func(string) string {
		return func(dir string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	}
	file := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, n := range names {
				writeFile(t, filepath.Join(dir, n), "x")
			}
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string)
		out  func(dir string) string
		code fault.Class
		says string
	}{
		{"empty", file(), at(), 0, ""},
		{"to be made", file(), at("a", "b"), 0, ""},
		{"ours", file("wbox-ws2022-none-1.37.2.0-libvirt.box", ".wbox.lock", ".wbox-probe-1", ".wbox-tmp-1"), at(), 0, ""},
		{"one foreign file", file("x"), at(), fault.Usage, "did not write (x)"},
		{"many foreign files", file("e", "d", "c", "b", "a"), at(), fault.Usage, "(a, b, c and 2 more)"},
		{"a foreign catalog", file("catalog.json"), at(), fault.Usage, "catalog.json"},
		{"a file", file("x"), at("x"), fault.Usage, "is a file"},
		{"below a file", file("x"), at("x", "y", "z"), fault.Host, "is not writable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.make(t, dir)
			before := names(t, dir)
			out := tt.out(dir)
			err := checkOutput(out)
			if fault.ClassOf(err) != tt.code || err != nil && (!strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "-o "+out)) {
				t.Errorf("got %v, want class %d, %q and the folder as it was given", err, tt.code, tt.says)
			}
			if after := names(t, dir); after != before {
				t.Errorf("it left %s, there was %s", after, before)
			}
		})
	}
}

func TestCheckOutputFollowsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"good": "real", "bad": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkOutput(filepath.Join(dir, "good")); err != nil {
		t.Error(err)
	}
	if err := checkOutput(filepath.Join(dir, "bad")); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("a link to nowhere: got %v", err)
	}
}

func TestOneBuildAnOutputFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "out")
	release, err := LockOutput(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockOutput(dir); fault.ClassOf(err) != fault.Busy || runtime.GOOS != "windows" && !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Errorf("while it is held: got %v", err)
	}
	release()
	writeFile(t, filepath.Join(dir, ".wbox-tmp-1"), "x") // of a run that died
	release, err = LockOutput(dir)
	if err != nil {
		t.Fatalf("after it was let go: %v", err)
	}
	release()
	if got := names(t, dir); strings.Contains(got, ".wbox-tmp") {
		t.Errorf("what a dead run has left is still there: %s", got)
	}
	writeFile(t, filepath.Join(dir, "file"), "x")
	if _, err := LockOutput(filepath.Join(dir, "file", "out")); fault.ClassOf(err) != fault.Host {
		t.Errorf("below a file: got %v", err)
	}
}

// built is a finished build of a stand-in whose box has the given content.
func built(t *testing.T, r *Resolved, content string, hit bool) *Built {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libvirt.box")
	writeFile(t, path, content)
	digest, size, err := cas.DigestFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	boots := map[string]any{"boots": json.RawMessage("3")}
	return &Built{Resolved: r, boxPath: path, Stages: []BuiltStage{
		{Stage: "windows", Hit: true, Seconds: 60, Facts: boots},
		{Stage: "updates", Empty: "none was asked for"},
		{Stage: "features", Hit: hit, Seconds: 30, Facts: boots},
		// Proven by an earlier run, on something else than this one's machine.
		{Stage: proof.Name, Hit: true, Facts: map[string]any{"driver": json.RawMessage(`"qemu 9.9.9"`), "accelerator": json.RawMessage(`"kvm"`)}},
		{Stage: libvirt.Name, Hit: hit, Seconds: 2, Outputs: map[string]cas.OutputResult{libvirt.Output: {Digest: digest, Size: size}}},
	}}
}

func publisher(t *testing.T) (*Builder, *Resolved) {
	t.Helper()
	b := newTestBuilder(t, t.TempDir(), plenty)
	b.opts.Driver = fake.New(nil)
	r := standInBuild(t, "calico")
	r.Features = hypervisor.Features{Version: "1.2.3", Accelerator: hypervisor.Emulation}
	r.Ref.Inputs = map[string]string{"kubelet.exe": "sha256:ab"}
	if err := r.name(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.Spec.Output, 0o755); err != nil {
		t.Fatal(err)
	}
	return b, r
}

func TestPublish(t *testing.T) {
	b, r := publisher(t)
	p, err := b.Publish(t.Context(), built(t, r, "box", false))
	if err != nil {
		t.Fatal(err)
	}
	if p.UpToDate || p.Name != "local/wbox-ws2022-calico-stand-in" || p.Version != "1.37.2.0" || p.Provider != "libvirt" || p.GuestScripts != "not executed" {
		t.Errorf("published %+v", p)
	}
	for _, path := range []string{p.Catalog, p.Box, p.Manifest} {
		if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || !filepath.IsAbs(path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	var m Manifest
	data, err := os.ReadFile(p.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if m.Boots != 6 || m.Seconds != 92 || !m.StandIn || m.SHA256 != p.SHA256 || m.GuestScripts != "not executed" {
		t.Errorf("manifest %+v", m)
	}
	if m.Proof.Guest != "stand-in" || m.Proof.Remark == "" || m.Proof.Accelerator != "kvm" || m.Proof.Driver != "qemu 9.9.9" {
		t.Errorf("proof %+v", m.Proof)
	}
	if m.Inputs["iso"] != standInISO || m.Inputs["kubernetes kubelet.exe"] != "sha256:ab" {
		t.Errorf("inputs %v", m.Inputs)
	}
}

func TestPublishAgain(t *testing.T) {
	b, r := publisher(t)
	first, err := b.Publish(t.Context(), built(t, r, "box", false))
	if err != nil {
		t.Fatal(err)
	}
	manifest := readFile(t, first.Manifest)
	again, err := b.Publish(t.Context(), built(t, r, "box", true))
	if err != nil || !again.UpToDate {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if readFile(t, first.Manifest) != manifest {
		t.Error("the manifest of what is up to date was written again")
	}
	for _, lost := range []string{first.Manifest, first.Box, first.Catalog} {
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Publish(t.Context(), built(t, r, "box", true)); err != nil || readFile(t, lost) == "" {
			t.Errorf("%s is not back: %v", filepath.Base(lost), err)
		}
	}
	if _, err := b.Publish(t.Context(), built(t, r, "another box", false)); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "--revision") {
		t.Errorf("another box of the same version: got %v", err)
	}
	if readFile(t, first.Box) != "box" {
		t.Error("the published box was replaced")
	}
}

// A bake takes long: what could not be published is refused before it.
func TestPreflightRefusesWhatCouldNotBePublished(t *testing.T) {
	b, r := publisher(t)
	if err := b.Preflight(t.Context(), r); err != nil {
		t.Fatalf("into an empty folder: %v", err)
	}
	if _, err := b.Publish(t.Context(), built(t, r, "box", false)); err != nil {
		t.Fatal(err)
	}
	if err := b.Preflight(t.Context(), r); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "--revision 1.37.2.0") {
		t.Errorf("the same version, layers to be made: got %v", err)
	}
	higher := *r
	higher.Version = "1.37.2.1"
	if err := b.Preflight(t.Context(), &higher); err != nil {
		t.Errorf("a higher revision: got %v", err)
	}
	other := *r
	other.BoxName = "local/other"
	if err := b.Preflight(t.Context(), &other); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "offers another box, "+r.BoxName) {
		t.Errorf("another box: got %v", err)
	}
	warm(t, b, r, mib, time.Minute)
	if err := b.Preflight(t.Context(), r); err != nil {
		t.Errorf("with all layers in the store: got %v", err)
	}
}

func TestBoots(t *testing.T) {
	b := built(t, standInBuild(t, "none"), "box", false)
	if all, now := b.Boots(false), b.Boots(true); all != 6 || now != 3 {
		t.Errorf("%d boots in all, %d in this run; want 6 and 3", all, now)
	}
	if b.UpToDate() || !built(t, standInBuild(t, "none"), "box", true).UpToDate() {
		t.Error("only a build of hits and empty stages is up to date")
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// names lists all files below dir.
func names(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}
