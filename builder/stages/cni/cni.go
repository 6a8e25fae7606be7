// Package cni is the layer of what a CNI needs on a node before it joins:
// folders and firewall rules. Networks, bridges and switches belong to join
// time, not to a box. It must not import another stage.
package cni

import "github.com/wbox-dev/wbox/builder/internal/bake"

// Name is the stage's id.
const Name = "cni"

// Config says which CNI.
type Config struct {
	CNI string // none, calico, antrea or flannel
}

// params are the parameters of 40-prepare-cni.
type params struct {
	CNI string `json:"cni"`
}

// New makes the layer; without a CNI it has nothing to do.
func New(cfg Config, parent, access string, host bake.Host) *bake.Layer {
	l := &bake.Layer{ID: Name, Label: "preparing for " + cfg.CNI, Version: 1, Parent: parent, Access: access, Host: host,
		Scripts: Scripts(cfg)}
	if len(l.Scripts) == 0 {
		l.Label, l.Empty = "preparing for a CNI", "no CNI was asked for"
	}
	return l
}

// Scripts returns the layer's scripts, which the proof tests again.
func Scripts(cfg Config) []bake.Script {
	if cfg.CNI == "none" {
		return nil
	}
	return []bake.Script{{Name: "40-prepare-cni", Params: params{cfg.CNI}}}
}
