package hostprocess

import (
	_ "embed"
	"strings"

	"github.com/wbox-dev/wbox/images/layer"
)

// startKubeProxy is the script that the container runs. It lies where that of
// the images that the manifest was written for does.
//
//go:embed scripts/start.ps1
var startKubeProxy string

// KubeProxy says which kube-proxy.exe an image is for.
type KubeProxy struct {
	Version      string   // of Kubernetes, such as "v1.38.0-alpha.1.5+0123456789abcd"
	Revision     string   // Optional: its commit
	Program      string   // where kube-proxy.exe lies
	FeatureGates []string // Optional: "NAME=true", for a version that has them off
}

// Image returns the image of kube-proxy under the name that the manifest
// of kubernetes-sigs/sig-windows-tools (hostprocess/calico/kube-proxy) asks for.
func (k KubeProxy) Image() (Image, error) {
	name, err := tagged("docker.io/sigwindowstools/kube-proxy", k.Version, "-calico-hostprocess")
	if err != nil {
		return Image{}, err
	}
	files := []layer.File{
		{Name: "kube-proxy/kube-proxy.exe", Path: k.Program},
		{Name: "kube-proxy/start.ps1", Data: []byte(strings.ReplaceAll(startKubeProxy, "\n", "\r\n"))},
	}
	im := Image{Name: name, Title: "kube-proxy for Windows", Version: k.Version, Revision: k.Revision, Source: "https://github.com/kubernetes/kubernetes",
		Files: files, Entrypoint: []string{"PowerShell"}}
	if len(k.FeatureGates) > 0 {
		im.Env = []string{"KUBE_PROXY_FEATURE_GATES=" + strings.Join(k.FeatureGates, ",")}
	}
	return im, checkPrograms("--k8s", files)
}
