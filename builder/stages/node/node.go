// Package node is the layer of services, folders and flags of a Kubernetes
// node. It is keyed by the Kubernetes minor and its quirks, not by the binaries:
// another kubelet.exe of the same minor costs no boot here. It must not import
// another stage.
package node

import (
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/quirks"
)

// Name is the stage's id.
const Name = "node"

// Config says for which Kubernetes and which Windows.
type Config struct {
	Minor        quirks.Minor
	WindowsBuild int
}

// params are the parameters of 50-prepare-node.
type params struct {
	Minor            int                      `json:"minor"`
	KubeletArgs      []string                 `json:"kubeletArgs"` // beside those that kubeadm writes at join
	FeatureOverrides []quirks.FeatureOverride `json:"featureOverrides"`
}

// New makes the layer.
func New(cfg Config, parent, access string, host bake.Host) *bake.Layer {
	return &bake.Layer{ID: Name, Label: "preparing the node", Version: 1, Parent: parent, Access: access, Host: host,
		Scripts: Scripts(cfg)}
}

// Scripts returns the layer's scripts, which the proof tests again.
func Scripts(cfg Config) []bake.Script {
	return []bake.Script{{
		Name:   "50-prepare-node",
		Params: params{int(cfg.Minor), kubeletArgs(cfg.Minor), overrides(cfg.WindowsBuild)},
		Extra:  []string{"Sync-WboxPayload.ps1", "Set-WboxNetwork.ps1", "Update-WboxKubeletService.ps1"},
	}}
}

// kubeletArgs are kubelet's arguments on Windows, as image-builder and
// sig-windows-tools set them. --windows-service makes kubelet itself answer the
// service manager, which graceful node shutdown needs (image-builder#1752).
func kubeletArgs(m quirks.Minor) []string {
	args := []string{
		"--windows-service",
		"--cert-dir=C:/var/lib/kubelet/pki",
		"--config=C:/var/lib/kubelet/config.yaml",
		"--bootstrap-kubeconfig=C:/etc/kubernetes/bootstrap-kubelet.conf",
		"--kubeconfig=C:/etc/kubernetes/kubelet.conf",
		"--enable-debugging-handlers",
		"--cgroups-per-qos=false",
		"--enforce-node-allocatable=",
		"--resolv-conf=",
		"--container-runtime-endpoint=npipe:////./pipe/containerd-containerd",
	}
	if m.PodInfraContainerImage() {
		args = append(args, "--pod-infra-container-image="+quirks.PauseImage(0))
	}
	return args
}

// overrides never returns nil: the parameter is a list for PowerShell.
func overrides(build int) []quirks.FeatureOverride {
	return append([]quirks.FeatureOverride{}, quirks.FeatureOverrides(build)...)
}
