package hostprocess

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/layer"
)

// folder writes files whose names end in .exe as what passes for a program.
func folder(t *testing.T, names ...string) (string, Files) {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		p := filepath.Join(dir, filepath.FromSlash(n))
		text := n
		if strings.HasSuffix(n, ".exe") {
			text = "MZ" + n
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := FilesIn("--cni", dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, files
}

func build(t *testing.T, im Image) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	base, err := Base(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	img, err := Build(t.Context(), base, im, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "windows" || config.Architecture != "amd64" || config.OSVersion != "" || len(config.RootFS.DiffIDs) != 2 || len(config.History) != 2 {
		t.Errorf("configuration %+v", config)
	}
	return img, config
}

// regular lists the regular files of the uppermost layer.
func regular(t *testing.T, img v1.Image) []string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	rc, err := layers[len(layers)-1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var out []string
	for r := tar.NewReader(rc); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			out = append(out, h.Name)
		}
	}
}

func TestKubeProxy(t *testing.T) {
	dir, _ := folder(t, "kube-proxy.exe")
	im, err := KubeProxy{Version: "v1.38.0-alpha.1.5+0123abcd", Revision: "0123abcd", Program: filepath.Join(dir, "kube-proxy.exe"), FeatureGates: []string{"WinDSR=true"}}.Image()
	if err != nil {
		t.Fatal(err)
	}
	if want := "docker.io/sigwindowstools/kube-proxy:v1.38.0-alpha.1.5_0123abcd-calico-hostprocess"; im.Name != want {
		t.Errorf("name %s", im.Name)
	}
	img, config := build(t, im)
	if got := regular(t, img); !slices.Equal(got, []string{"Files/kube-proxy/kube-proxy.exe", "Files/kube-proxy/start.ps1"}) {
		t.Errorf("files %v", got)
	}
	if e := config.Config.Env; len(e) != 2 || !strings.HasPrefix(e[0], `PATH=C:\Windows\system32;`) || e[1] != "KUBE_PROXY_FEATURE_GATES=WinDSR=true" {
		t.Errorf("environment %v", e)
	}
	if l := config.Config.Labels; l["org.opencontainers.image.version"] != "v1.38.0-alpha.1.5+0123abcd" || l["org.opencontainers.image.revision"] != "0123abcd" {
		t.Errorf("labels %v", l)
	}
}

func TestAntrea(t *testing.T) {
	_, files := folder(t, "antrea-agent.exe", "antctl.exe", "antrea-cni.exe", "host-local.exe", "openvswitch/usr/bin/ovs-vsctl.exe", "README")
	im, err := Antrea("--cni", files, "v2.7.0", "")
	if err != nil || im.Name != "docker.io/antrea/antrea-windows:v2.7.0" {
		t.Fatalf("%s, %v", im.Name, err)
	}
	img, _ := build(t, im)
	if got, want := regular(t, img), []string{"Files/k/antrea/bin/antctl.exe", "Files/k/antrea/bin/antrea-agent.exe", "Files/k/antrea/cni/antrea.exe", "Files/k/antrea/cni/host-local.exe",
		"Files/openvswitch/usr/bin/ovs-vsctl.exe"}; !slices.Equal(got, want) {
		t.Errorf("files %v\nwant  %v", got, want)
	}
}

func scripts() []string {
	return []string{"CalicoWindows/felix/felix-service.ps1", "CalicoWindows/node/node-service.ps1", "CalicoWindows/config-hpc.ps1", "CalicoWindows/libs/calico/calico.psm1",
		"CalicoWindows/libs/hns/hns.psm1", "CalicoWindows/uninstall-calico-hpc.ps1", "CalicoWindows/confd/conf.d/blocks.toml"}
}

func TestCalico(t *testing.T) {
	ours := []string{"Files/CalicoWindows/confd/conf.d/blocks.toml", "Files/CalicoWindows/config.ps1", "Files/CalicoWindows/felix-service.ps1", "Files/CalicoWindows/libs/calico/calico.psm1",
		"Files/CalicoWindows/libs/hns/hns.psm1", "Files/CalicoWindows/node-service.ps1", "Files/uninstall-calico.ps1"}
	for version, c := range map[string]struct {
		programs []string
		registry string
		node     string
		cni      []string
		cmd      string
	}{
		"v3.30.1": {[]string{"calico-node.exe", "calico.exe", "calico-ipam.exe", "install.exe", "nssm.exe"}, "docker.io", "calico-node.exe",
			[]string{"Files/opt/cni/bin/calico-ipam.exe", "Files/opt/cni/bin/calico.exe", "Files/opt/cni/bin/install.exe"}, "/opt/cni/bin/install.exe"},
		"v3.34.0": {[]string{"calico.exe", "flannel.exe"}, "quay.io", "calico.exe",
			[]string{"Files/opt/cni/bin/calico.exe", "Files/opt/cni/bin/flannel.exe"}, "/opt/cni/bin/calico.exe component cni install"},
	} {
		_, files := folder(t, append(c.programs, scripts()...)...)
		got, err := Calico("--cni", files, version, "")
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Name != c.registry+"/calico/node-windows:"+version || got[1].Name != c.registry+"/calico/cni-windows:"+version {
			t.Errorf("names %s, %s", got[0].Name, got[1].Name)
		}
		node, _ := build(t, got[0])
		want := append(slices.Clone(ours), "Files/CalicoWindows/"+c.node)
		if slices.Contains(c.programs, "nssm.exe") {
			want = append(want, "Files/nssm.exe")
		}
		slices.Sort(want)
		if files := regular(t, node); !slices.Equal(files, want) {
			t.Errorf("%s: node has\n%v\nwant\n%v", version, files, want)
		}
		cni, config := build(t, got[1])
		if files := regular(t, cni); !slices.Equal(files, c.cni) {
			t.Errorf("%s: CNI has\n%v\nwant\n%v", version, files, c.cni)
		}
		if cmd := strings.Join(config.Config.Cmd, " "); cmd != c.cmd {
			t.Errorf("%s: command %s", version, cmd)
		}
	}
}

// All that is missing is named, and what is no program refused.
func TestWhatIsRefused(t *testing.T) {
	_, files := folder(t, "antctl.exe", "calico.exe")
	for what, c := range map[string]struct {
		do   func() error
		want string
	}{
		"antrea":  {func() error { _, err := Antrea("--cni", files, "v2.7.0", ""); return err }, "antrea-agent.exe, antrea-cni.exe"},
		"calico":  {func() error { _, err := Calico("--cni", files, "v3.34.0", ""); return err }, "node-service.ps1"},
		"version": {func() error { _, err := Antrea("--cni", files, "", ""); return err }, "can't be a tag"},
		"folder":  {func() error { _, err := FilesIn("--cni", "/does/not/exist"); return err }, "can't be read"},
		"no exe": {func() error {
			_, err := KubeProxy{Version: "v1.37.2", Program: files["none"] + "image_test.go"}.Image()
			return err
		}, "is no Windows program"},
	} {
		if err := c.do(); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A base that is tied to a release of Windows would tie the image too.
func TestBaseIsRefused(t *testing.T) {
	opts := layer.Options{Created: created(), Dir: t.TempDir()}
	base, err := Base(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*v1.ConfigFile){func(c *v1.ConfigFile) { c.OSVersion = "10.0.20348.1" }, func(c *v1.ConfigFile) { c.OS = "linux" }, func(c *v1.ConfigFile) { c.Architecture = "arm64" }} {
		config, _ := base.ConfigFile()
		config = config.DeepCopy()
		change(config)
		other, err := mutate.ConfigFile(base, config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Build(t.Context(), other, Image{}, opts); fault.ClassOf(err) != fault.Input {
			t.Errorf("%s/%s %s: %v", config.OS, config.Architecture, config.OSVersion, err)
		}
	}
}

func TestPatch(t *testing.T) {
	got := string(AntreaWorkload().Patch("docker.io/antrea/antrea-windows:v9"))
	const want = `apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: antrea-agent-windows
  namespace: kube-system
spec:
  template:
    spec:
      initContainers:
      - name: install-cni
        image: docker.io/antrea/antrea-windows:v9
        imagePullPolicy: IfNotPresent
      containers:
      - name: antrea-agent
        image: docker.io/antrea/antrea-windows:v9
        imagePullPolicy: IfNotPresent
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestTag(t *testing.T) {
	for in, want := range map[string]string{"v1.37.2": "v1.37.2", "v1.38.0-alpha.1.5+0123": "v1.38.0-alpha.1.5_0123", "-x": "x", "pull/12": "pull_12", "": "", strings.Repeat("a", 200): strings.Repeat("a", 128)} {
		if got := Tag(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
