package hostprocess

import (
	"context"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images/layer"
)

// Image says what is put on the base.
type Image struct {
	Name       string // the full reference under which a manifest asks for it
	Title      string // for people
	Version    string // of what is in it
	Revision   string // Optional: the commit of its source
	Source     string // the project's page
	Files      []layer.File
	Env        []string // beside PATH
	Path       []string // Optional: folders in front of Windows' own in PATH
	Entrypoint []string
	Cmd        []string
	WorkingDir string
}

// Build puts the files onto base and returns the image. A base that is not for
// Windows on amd64, or that ties the image to one release of Windows, is a
// *fault.Problem of class fault.Input.
func Build(ctx context.Context, base v1.Image, im Image, opts layer.Options) (v1.Image, error) {
	config, err := checkBase(base)
	if err != nil {
		return nil, err
	}
	l, err := layer.Windows(ctx, im.Files, opts)
	if err != nil {
		return nil, fmt.Errorf("making the layer of %s: %w", im.Name, err)
	}
	img, err := appendLayer(base, l, "wbox: "+im.Title+" "+im.Version, opts)
	if err != nil {
		return nil, err
	}
	config, err = img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: opts.Created.UTC()}
	c := &config.Config
	c.User = "" // the pod says who it runs as
	c.Env = append([]string{"PATH=" + strings.Join(append(im.Path, windowsPath()...), ";")}, im.Env...)
	c.Entrypoint, c.Cmd, c.WorkingDir = im.Entrypoint, im.Cmd, im.WorkingDir
	c.Labels = im.labels()
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return img, nil
}

// windowsPath lists the folders of the host's programs: the base has none, and
// a HostProcess container runs the host's PowerShell.
func windowsPath() []string {
	return []string{`C:\Windows\system32`, `C:\Windows`, `C:\Windows\System32\WindowsPowerShell\v1.0\`, `C:\Windows\System32\wbem`}
}

func (im Image) labels() map[string]string {
	labels := map[string]string{"org.opencontainers.image.title": im.Title, "org.opencontainers.image.version": im.Version, "org.opencontainers.image.source": im.Source}
	if im.Revision != "" {
		labels["org.opencontainers.image.revision"] = im.Revision
	}
	return labels
}

// checkBase refuses a base that images would not run from everywhere.
func checkBase(base v1.Image) (*v1.ConfigFile, error) {
	config, err := base.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base's configuration: %w", err)
	}
	p := &fault.Problem{Class: fault.Input, Field: "the base image", Fix: "use " + PublishedBase + ", or none: wbox makes it"}
	switch {
	case config.OS != "windows" || config.Architecture != "amd64":
		p.Value, p.Why = config.OS+"/"+config.Architecture, "is not for windows/amd64"
		return nil, p
	case config.OSVersion != "":
		p.Value, p.Why = config.OSVersion, "is the one release of Windows that containerd would take the image on"
		return nil, p
	}
	return config, nil
}
