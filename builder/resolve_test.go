package builder

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/spec"
)

// resolving is a Builder on a host, and a good Spec: programs in bin, and a medium.
func resolving(t *testing.T, bin string, on *fake.Driver, standIn *iso.StandIn) (*Builder, *spec.Spec) {
	t.Helper()
	dir := t.TempDir()
	medium := filepath.Join(dir, "medium.iso")
	if err := isotest.WriteFake(medium, isotest.Editions("2022"), standIn); err != nil {
		t.Fatal(err)
	}
	b := newTestBuilder(t, filepath.Join(dir, "store"), plenty)
	b.opts.Driver = on
	return b, &spec.Spec{K8s: bin, K8sVersion: "v1.37.2", ISO: medium,
		Output: filepath.Join(dir, "out")}
}

func fast() *fake.Driver {
	return &fake.Driver{Features: hypervisor.Features{Version: "8.2.0", Accelerator: "kvm"}}
}

func slow() *fake.Driver {
	return &fake.Driver{Features: hypervisor.Features{Version: "8.2.0", Accelerator: hypervisor.Emulation, AcceleratorNote: "KVM hangs"}}
}

func acting() *iso.StandIn { return &iso.StandIn{StandIn: true, Version: "1", PowerShell: "7.6.9"} }

func bin(t *testing.T) string {
	t.Helper()
	return kubetest.Fixture(t, filepath.Join(t.TempDir(), "bin"), "v1.37.2")
}

func needQemuImg(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed: every host would be refused")
	}
}

func TestResolve(t *testing.T) {
	needQemuImg(t)
	programs := bin(t)
	for _, tt := range []struct {
		name    string
		on      *fake.Driver
		standIn *iso.StandIn
		change  func(*spec.Spec)
		box     string
		memory  int
		scripts string
	}{
		{"Windows", fast(), nil, nil, "local/wbox-ws2022-none", 4096, "powershell"},
		{"stand-in", fast(), acting(), nil, "local/wbox-ws2022-none-stand-in", 2048, "powershell"},
		{"stand-in in emulation", slow(), acting(), nil, "local/wbox-ws2022-none-stand-in", 2048, "powershell"},
		{"stand-in that answers for scripts", fast(), &iso.StandIn{StandIn: true, Version: "1"}, nil, "local/wbox-ws2022-none-stand-in", 2048, "not executed"},
		{"emulation allowed", slow(), nil, func(s *spec.Spec) { s.AllowEmulation = true }, "local/wbox-ws2022-none", 4096, "powershell"},
		{"memory and name", fast(), acting(), func(s *spec.Spec) { s.Memory, s.Name = "3GiB", "me/mine" }, "me/mine-stand-in", 3072, "powershell"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, s := resolving(t, programs, tt.on, tt.standIn)
			if tt.change != nil {
				tt.change(s)
			}
			r, err := b.Resolve(t.Context(), s, ResolveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r.BoxName != tt.box || r.Version != "1.37.2.0" || r.memoryMiB != tt.memory || r.GuestScripts() != tt.scripts || r.Minor != 37 {
				t.Errorf("got %s %s, %d MiB, scripts %s, minor %d", r.BoxName, r.Version, r.memoryMiB, r.GuestScripts(), r.Minor)
			}
			if !strings.HasPrefix(r.ISODigest, "sha256:") || !strings.HasSuffix(r.Edition.Name, "CORE") {
				t.Errorf("medium %s, edition %s", r.ISODigest, r.Edition.Name)
			}
			if _, err := os.Stat(s.Output); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the output folder exists before anything was built: %v", err)
			}
		})
	}
}

// Relative paths are as seen from where wbox was started; stages get absolute
// ones, since QEMU and the other programs have folders of their own.
func TestStagesGetAbsolutePaths(t *testing.T) {
	b, s := resolving(t, bin(t), fast(), acting())
	dir := filepath.Dir(s.ISO)
	t.Chdir(dir)
	s.ISO, s.Output = "medium.iso", "out"
	r, err := b.Resolve(t.Context(), s, ResolveOptions{PlanOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, st := range pipeline(r, bake.Host{}) {
		for _, in := range st.Inputs() {
			if in.From != "" {
				continue
			}
			seen++
			if !filepath.IsAbs(in.Path) {
				t.Errorf("stage %s: input %s lies at %q", st.Name(), in.Name, in.Path)
			}
		}
	}
	if seen < 1 {
		t.Errorf("%d locked inputs, want the medium", seen)
	}
}

// Everything that is wrong is said at once, whoever finds it.
func TestResolveTellsAllProblemsTogether(t *testing.T) {
	needQemuImg(t)
	b, s := resolving(t, bin(t), slow(), nil)
	s.K8s, s.K8sVersion, s.CNI, s.Output, s.Containerd = "v9.9.9", "", "weave", s.ISO, t.TempDir()
	_, err := b.Resolve(t.Context(), s, ResolveOptions{})
	var p *fault.Preflight
	if !errors.As(err, &p) || p.Class() != fault.Usage {
		t.Fatalf("got %v", err)
	}
	for _, field := range []string{"--cni weave", "--k8s v9.9.9", "--containerd ", "-o " + s.ISO, "acceleration"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not among %v", field, err)
		}
	}
	if len(p.Errs) != 5 {
		t.Errorf("got %d problems, want 5: %v", len(p.Errs), err)
	}
}

func TestResolveRefusesTheHost(t *testing.T) {
	needQemuImg(t)
	b, s := resolving(t, bin(t), slow(), nil)
	_, err := b.Resolve(t.Context(), s, ResolveOptions{})
	if fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "KVM hangs") || !strings.Contains(err.Error(), "--allow-emulation") {
		t.Errorf("without acceleration: got %v", err)
	}
	missing := &fault.Problem{Class: fault.Host, Field: "program", Value: "qemu", Why: "is too old"}
	b, s = resolving(t, s.K8s, &fake.Driver{ProbeErr: missing}, nil)
	if _, err := b.Resolve(t.Context(), s, ResolveOptions{}); fault.ClassOf(err) != fault.Host || !errors.Is(err, missing) {
		t.Errorf("without QEMU: got %v", err)
	}
	if _, err := b.Resolve(t.Context(), s, ResolveOptions{PlanOnly: true}); err != nil {
		t.Errorf("a plan needs no host: got %v", err)
	}
}

func TestResolveEndsWithItsContext(t *testing.T) {
	b, s := resolving(t, t.TempDir(), fast(), acting())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Resolve(ctx, s, ResolveOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
