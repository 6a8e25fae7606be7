// Package runtime is the layer of the container runtime: containerd's folders
// and configuration, and containerd itself where its files are given. It must
// not import another stage.
package runtime

import (
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/quirks"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id.
const Name = "runtime"

// Config says which runtime, for which Windows.
type Config struct {
	WindowsBuild int // such as 20348
	// Optional: a folder with containerd.exe, ctr.exe and containerd-shim-runhcs-v1.exe,
	// named FolderName. Without it only the configuration is there.
	Programs *stage.Input
	Version  string      // of containerd, where it is known
	Images   []Image     // Optional: images that are imported
	Archives stage.Input // the folder of their archives, where there are any
	NoUnpack bool        // import them without unpacking, for guests that can't unpack Windows layers
}

// Image is one image that is imported.
type Image struct {
	Name   string `json:"name"`   // with its registry and tag
	Digest string `json:"digest"` // that containerd must know it by
	File   string `json:"file"`   // its archive
}

// FolderName is the folder below payload/ where the script looks.
const FolderName = "containerd"

// params are the parameters of 30-install-runtime.
type params struct {
	ConfigVersion int      `json:"configVersion"` // of containerd's config.toml; 3 is what every 2.x reads
	SandboxImage  string   `json:"sandboxImage"`
	BinDirs       []string `json:"binDirs"` // where CNI plugins lie, with forward slashes
	ConfDir       string   `json:"confDir"`
}

// preloadParams are the parameters of 32-preload-images.
type preloadParams struct {
	Images []Image  `json:"images"`
	Unpack bool     `json:"unpack"`
	Pinned []string `json:"pinned"`
}

// New makes the layer.
func New(cfg Config, parent, access string, host bake.Host) *bake.Layer {
	l := &bake.Layer{ID: Name, Label: "installing the container runtime", Version: 1, Parent: parent, Access: access, Host: host,
		Scripts: Scripts(cfg)}
	if cfg.Programs != nil {
		l.Folders = []stage.Input{*cfg.Programs}
	}
	if len(cfg.Images) > 0 {
		l.Folders = append(l.Folders, cfg.Archives)
	}
	return l
}

// Scripts returns the layer's scripts, which the proof tests again.
func Scripts(cfg Config) []bake.Script {
	scripts := []bake.Script{{Name: "30-install-runtime", Params: params{
		ConfigVersion: quirks.ContainerdConfig(cfg.Version),
		SandboxImage:  quirks.PauseImage(cfg.WindowsBuild),
		BinDirs:       []string{"C:/opt/cni/bin"},
		ConfDir:       "C:/etc/cni/net.d",
	}}}
	if len(cfg.Images) > 0 {
		pinned := []string{}
		for _, i := range cfg.Images {
			if i.Name == quirks.PauseImage(cfg.WindowsBuild) { // no sandbox starts without it
				pinned = append(pinned, i.Name)
			}
		}
		scripts = append(scripts, bake.Script{Name: "32-preload-images", Params: preloadParams{cfg.Images, !cfg.NoUnpack, pinned}})
	}
	return scripts
}
