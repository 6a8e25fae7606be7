// Package cni is the layer of what a CNI needs on a node before it joins:
// folders and firewall rules, and its programs where they are given. Networks, bridges and switches belong to join
// time, not to a box. It must not import another stage.
package cni

import (
	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id.
const Name = "cni"

// Config says which CNI.
type Config struct {
	CNI string // none, calico, antrea or flannel
	// Optional: a folder with the CNI's programs, named FolderName. Without it
	// they come at join time, with a DaemonSet.
	Programs *stage.Input
}

// FolderName is the folder below payload/ where the script looks.
const FolderName = "cni"

// params are the parameters of 40-prepare-cni.
type params struct {
	CNI    string            `json:"cni"`
	Places []component.Place `json:"places,omitempty"` // where which of the programs goes
	Needed []string          `json:"needed,omitempty"` // programs that must be there, whoever put them
}

// New makes the layer; without a CNI it has nothing to do.
func New(cfg Config, parent, access string, host bake.Host) *bake.Layer {
	l := &bake.Layer{ID: Name, Label: "preparing for " + cfg.CNI, Version: 1, Parent: parent, Access: access, Host: host,
		Scripts: Scripts(cfg)}
	switch {
	case len(l.Scripts) == 0:
		l.Label, l.Empty = "preparing for a CNI", "no CNI was asked for"
	case cfg.Programs != nil:
		l.Label, l.Folders = "installing "+cfg.CNI, []stage.Input{*cfg.Programs}
	}
	return l
}

// Scripts returns the layer's scripts, which the proof tests again.
func Scripts(cfg Config) []bake.Script {
	if cfg.CNI == "none" {
		return nil
	}
	p := params{CNI: cfg.CNI}
	if cfg.Programs != nil {
		p.Places, p.Needed = component.Places(cfg.CNI), component.Needed(cfg.CNI)
	}
	return []bake.Script{{Name: "40-prepare-cni", Params: p}}
}
