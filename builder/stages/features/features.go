// Package features is the layer of Windows features and optional features that
// a node of a given CNI needs, with the reboot that makes them active. Which
// ones, and why, is from the CNIs' own documents. It must not import another
// stage.
package features

import "github.com/wbox-dev/wbox/builder/internal/bake"

// Name is the stage's id.
const Name = "features"

// Config says which node the features are for.
type Config struct {
	CNI string // none, calico, antrea or flannel
}

// params are the parameters of 20-install-features.
type params struct {
	Features    []string `json:"features"`    // names for Install-WindowsFeature
	DISM        []string `json:"dism"`        // optional features that dism.exe enables
	DisableDISM []string `json:"disableDism"` // optional features that dism.exe disables
}

// parameters returns what a CNI needs.
//
// Calico's BGP mode needs the routing role (docs.tigera.io, Calico for
// Windows); its VXLAN mode does not, but a box serves both. Antrea's Open
// vSwitch driver binds to Hyper-V's virtual switch only; dism skips the check
// for VT-x that Install-WindowsFeature makes, and Microsoft-Hyper-V-Online off
// keeps the hypervisor itself from starting, which would loop in a guest
// (antrea docs/windows.md, known issue 2).
func parameters(cni string) params {
	p := params{Features: []string{"Containers"}, DISM: []string{}, DisableDISM: []string{}}
	switch cni {
	case "calico":
		p.Features = append(p.Features, "RemoteAccess", "RSAT-RemoteAccess-PowerShell", "Routing")
	case "antrea":
		p.Features = append(p.Features, "Hyper-V-PowerShell")
		p.DISM = append(p.DISM, "Microsoft-Hyper-V")
		p.DisableDISM = append(p.DisableDISM, "Microsoft-Hyper-V-Online")
	}
	return p
}

// New makes the layer.
func New(cfg Config, parent, access string, host bake.Host) *bake.Layer {
	return &bake.Layer{ID: Name, Label: "installing Windows features", Version: 1, Parent: parent, Access: access, Host: host,
		Scripts: Scripts(cfg)}
}

// Scripts returns the layer's scripts, which the proof tests again.
func Scripts(cfg Config) []bake.Script {
	return []bake.Script{{Name: "20-install-features", Params: parameters(cfg.CNI)}}
}
