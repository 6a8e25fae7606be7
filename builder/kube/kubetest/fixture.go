// Package kubetest builds small Windows programs in the shape of Kubernetes'
// own: the same packages in modules of the same names, stamped with the same
// variables, so that they pass kube.Verify. They print their version and
// nothing else. It needs the go command, but no network. It must not be imported by
// anything that ends up in wbox itself, and it imports nothing of ours.
package kubetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Spec says which programs to build.
type Spec struct {
	Version   string   // stamped into them, such as "v1.37.2"
	Commit    string   // stamped as the commit, optional
	Date      string   // stamped as the build date, optional
	Variant   string   // changes the bytes and nothing else, optional
	Programs  []string // such as "kubelet"; nil means all four
	Unstamped bool     // leave the version variables as they are
	GOOS      string   // default "windows"
	GOARCH    string   // default "amd64"
}

// Fixture builds all four programs into dir and returns dir. Builds after the
// first come from the go command's cache, in about a second.
func Fixture(t testing.TB, dir, version string) string {
	t.Helper()
	return FixtureOf(t, dir, Spec{Version: version})
}

// FixtureOf builds what spec says into dir and returns dir. The test is skipped
// where there is no go command.
func FixtureOf(t testing.TB, dir string, spec Spec) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	if err := Build(t.Context(), dir, spec); err != nil {
		t.Fatal(err)
	}
	return dir
}

// BuildFixture builds all four programs into dir, which is made if need be.
// Another variant gives other bytes of the same version.
func BuildFixture(ctx context.Context, dir, version, variant string) error {
	return Build(ctx, dir, Spec{Version: version, Variant: variant})
}

// Build builds what spec says into dir, which is made if need be.
func Build(ctx context.Context, dir string, spec Spec) error {
	if spec.Programs == nil {
		spec.Programs = []string{"kube-log-runner", "kube-proxy", "kubeadm", "kubelet"}
	}
	src, err := os.MkdirTemp("", "wbox-fixture-")
	if err != nil {
		return fmt.Errorf("making a folder for the fixture: %w", err)
	}
	defer os.RemoveAll(src)
	if err := Tree(src); err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the fixture's folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the fixture's folder: %w", err)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + spec.ldflags(), "-o", dir + string(filepath.Separator)}
	for _, p := range spec.Programs {
		args = append(args, packageOf(p))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "GOOS="+or(spec.GOOS, "windows"), "GOARCH="+or(spec.GOARCH, "amd64"),
		"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the fixture: %w\n%s", err, out)
	}
	return nil
}

// ldflags sets the version variables, as the official build does.
func (s Spec) ldflags() string {
	flags := []string{"-s", "-w", "-X 'main.variant=" + s.Variant + "'"}
	if s.Unstamped {
		return strings.Join(flags, " ")
	}
	for _, v := range [][2]string{{"gitVersion", s.Version}, {"gitCommit", s.Commit}, {"buildDate", s.Date}} {
		if v[1] != "" {
			flags = append(flags, "-X 'k8s.io/client-go/pkg/version."+v[0]+"="+v[1]+"'", "-X 'k8s.io/component-base/version."+v[0]+"="+v[1]+"'")
		}
	}
	return strings.Join(flags, " ")
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func packageOf(program string) string {
	if program == "kube-log-runner" {
		return "k8s.io/component-base/logs/kube-log-runner"
	}
	return "k8s.io/kubernetes/cmd/" + program
}
