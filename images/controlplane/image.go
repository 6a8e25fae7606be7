package controlplane

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/layer"
)

// Programs returns the names of the programs that are images of their own,
// sorted.
func Programs() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler"}
}

// Needs says which programs of others a program calls, that must be on its
// base; nil: an empty base will do. The base of the official kube-proxy is
// registry.k8s.io/build-image/distroless-iptables.
func Needs(program string) []string {
	if program == "kube-proxy" {
		return []string{"iptables", "ip6tables", "nft", "conntrack", "ipset", "kmod"}
	}
	return nil
}

// Program is what one image of one platform is made of.
type Program struct {
	Name     string   // such as "kube-scheduler"
	Path     string   // where the program lies
	Runner   string   // where kube-log-runner for the same platform lies: manifests of others start it as /go-runner
	Arch     string   // "amd64" or "arm64"
	Version  string   // of Kubernetes
	Revision string   // Optional: its commit
	Base     v1.Image // Optional: default an empty one
}

// Build makes the image. A program that is not for the platform or not static,
// and one that an empty base can't run, are *fault.Problems of class
// fault.Input.
func Build(ctx context.Context, p Program, opts layer.Options) (v1.Image, error) {
	base, err := p.base()
	if err != nil {
		return nil, err
	}
	for _, path := range []string{p.Path, p.Runner} {
		if err := checkStatic(path, p.Arch); err != nil {
			return nil, err
		}
	}
	mediaType, err := base.MediaType()
	if err != nil {
		return nil, fmt.Errorf("reading the base: %w", err)
	}
	if mediaType == types.DockerManifestSchema2 {
		opts.Type = types.DockerLayer
	}
	l, err := layer.Linux(ctx, p.files(), opts)
	if err != nil {
		return nil, fmt.Errorf("making the layer of %s: %w", p.Name, err)
	}
	img, err := mutate.Append(base, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: opts.Created.UTC()}, CreatedBy: "wbox: " + p.Name + " " + p.Version}})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if img, err = mutate.ConfigFile(img, p.configure(config.DeepCopy(), opts)); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return img, nil
}

// base returns what the program is put on.
func (p Program) base() (v1.Image, error) {
	if p.Base == nil {
		if needs := Needs(p.Name); needs != nil {
			return nil, &fault.Problem{Class: fault.Input, Field: "the base image", Value: p.Name, Why: fmt.Sprintf("calls %v, which an empty base lacks", needs),
				Fix: "name a base that has them, such as registry.k8s.io/build-image/distroless-iptables"}
		}
		img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		img, err := mutate.ConfigFile(img, &v1.ConfigFile{OS: "linux", Architecture: p.Arch, RootFS: v1.RootFS{Type: "layers"},
			Config: v1.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"}}})
		if err != nil {
			return nil, fmt.Errorf("making an empty base: %w", err)
		}
		return img, nil
	}
	config, err := p.Base.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base's configuration: %w", err)
	}
	if config.OS != "linux" || config.Architecture != p.Arch {
		return nil, &fault.Problem{Class: fault.Input, Field: "the base image", Value: config.OS + "/" + config.Architecture, Why: "is not for linux/" + p.Arch, Fix: "name one that is"}
	}
	return p.Base, nil
}

// files are what the official images have above their base.
func (p Program) files() []layer.File {
	program := layer.File{Name: "usr/local/bin/" + p.Name, Path: p.Path, Mode: 0o755}
	if p.Name == "kube-apiserver" {
		program.Capabilities = layer.NetBindService() // it may run as another user than root
	}
	files := []layer.File{program, {Name: "go-runner", Path: p.Runner, Mode: 0o755}}
	if p.Base == nil {
		// Root and the user that images without one use, and a folder for
		// temporary files; the official base has them from distroless.
		files = append(files, layer.File{Name: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
			layer.File{Name: "etc/passwd", Data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
			layer.File{Name: "etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\n")})
	}
	return files
}

func (p Program) configure(c *v1.ConfigFile, opts layer.Options) *v1.ConfigFile {
	c.Created = v1.Time{Time: opts.Created.UTC()}
	c.Config.Entrypoint, c.Config.Cmd = []string{"/go-runner"}, nil
	if c.Config.User == "" {
		c.Config.User = "0"
	}
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    p.Name,
		"org.opencontainers.image.version":  p.Version,
		"org.opencontainers.image.source":   "https://github.com/kubernetes/kubernetes",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	if p.Revision != "" {
		c.Config.Labels["org.opencontainers.image.revision"] = p.Revision
	}
	return c
}

// checkStatic refuses a program that would not start in an image without
// libraries.
func checkStatic(path, arch string) error {
	refuse := func(why string, err error) error {
		return &fault.Problem{Class: fault.Input, Field: "the program", Value: path, Why: why, Err: err, Fix: "give one that was built for linux/" + arch + " with CGO_ENABLED=0"}
	}
	f, err := elf.Open(path)
	if err != nil {
		return refuse("is no Linux program", err)
	}
	defer f.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	switch want, ok := machines[arch]; {
	case !ok:
		return refuse("can't be put into an image for "+arch+": amd64 and arm64 are known", nil)
	case f.Machine != want:
		return refuse("is for "+f.Machine.String(), nil)
	}
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP {
			return refuse("is not static: it wants libraries of a system", nil)
		}
	}
	return nil
}
