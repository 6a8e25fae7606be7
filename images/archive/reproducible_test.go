package archive

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/controlplane"
	"github.com/wbox-dev/wbox/images/hostprocess"
	"github.com/wbox-dev/wbox/images/layer"
)

// assemblyVariable holds the folder of the binaries in a process that
// assembles; orderVariable is "reverse" where files are named from the end.
const assemblyVariable, orderVariable = "WBOX_TEST_ASSEMBLY", "WBOX_TEST_ORDER"

// TestAssembly is what the processes of TestTenAssemblies run: it makes every kind
// of image and an archive of them, and prints the archive's digest.
func TestAssembly(t *testing.T) {
	bin := os.Getenv(assemblyVariable)
	if bin == "" {
		t.Skip("run by TestTenAssemblies")
	}
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	var all []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		p := filepath.Join(bin, arch)
		img, err := controlplane.Build(t.Context(), controlplane.Program{Name: "kube-apiserver", Path: p, Runner: p, Arch: arch, Version: "v1.37.2"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, img)
	}
	base, err := hostprocess.Base(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	files, err := hostprocess.FilesIn("--cni", filepath.Join(bin, "antrea"))
	if err != nil {
		t.Fatal(err)
	}
	im, err := hostprocess.Antrea("--cni", files, "v2.7.0", "")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(orderVariable) == "reverse" {
		slices.Reverse(im.Files)
	}
	antrea, err := hostprocess.Build(t.Context(), base, im, opts)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	if _, err := Write(t.Context(), sum, []Entry{{[]string{"registry.k8s.io/kube-apiserver:v1.37.2"}, images.BuiltIndex(indexOf(t, all...), "it")}, built(im.Name, antrea)}, Options{}); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("assembled sha256:%x\n", sum.Sum(nil))
}

// TestTenAssemblies assembles the same binaries ten times, each time with
// everything else another, and wants one digest.
func TestTenAssemblies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs ten processes")
	}
	shell := tool(t, "sh", "dash")
	bin := t.TempDir()
	if err := os.MkdirAll(filepath.Join(bin, "antrea", "openvswitch"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"antrea-agent.exe", "antctl.exe", "antrea-cni.exe", "host-local.exe", "openvswitch/b.dll", "openvswitch/a.dll"} {
		if err := os.WriteFile(filepath.Join(bin, "antrea", filepath.FromSlash(f)), []byte("MZ"+f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.CommandContext(t.Context(), tool(t, "go", "golang"), "build", "-o", filepath.Join(bin, arch), src)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]int{}
	for i, zone := range []string{"UTC", "Asia/Tokyo", "America/Caracas", "Pacific/Chatham", "Europe/Berlin", "UTC-14", "UTC+11", "Asia/Kathmandu", "GMT", "Africa/Cairo"} {
		umask := []string{"022", "077", "000", "027"}[i%4]
		cmd := exec.CommandContext(t.Context(), shell, "-c", "umask "+umask+" && exec \"$0\" -test.run '^TestAssembly$' -test.v", self)
		cmd.Dir = t.TempDir()
		order := []string{"", "reverse"}[i%2]
		cmd.Env = append(os.Environ(), "TZ="+zone, "LANG=C", fmt.Sprintf("GOMAXPROCS=%d", 1+i%3), assemblyVariable+"="+bin, orderVariable+"="+order)
		out, err := cmd.CombinedOutput()
		m := regexp.MustCompile(`(?m)^assembled (sha256:\w{64})$`).FindStringSubmatch(string(out))
		if err != nil || m == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		digests[m[1]]++
		// Binaries with other times are the same binaries.
		if err := os.Chtimes(filepath.Join(bin, "amd64"), created().AddDate(0, i, 0), created().AddDate(0, i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(digests) != 1 {
		t.Errorf("%d digests: %v", len(digests), digests)
	}
	for d, n := range digests {
		t.Log(n, "times", strings.TrimSpace(d))
	}
}
