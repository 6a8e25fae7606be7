// Package generalize is the last layer: the box's own account is made, and all
// that let the bake in is taken out (account, certificate, listener, answer
// files). The guest seals itself after the connection is gone, and turns itself
// off. It must not import another stage.
package generalize

import (
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/internal/bake"
)

// Name is the stage's id.
const Name = "generalize"

// insecureKey is the well-known public key of every Vagrant box, which Vagrant
// replaces at the first "vagrant up" (hashicorp/vagrant, keys/vagrant.pub.ed25519).
const insecureKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN1YdxBpNlzxDqfJyw/QKow1F+wvG9hXGoqiysfJOn5Y vagrant insecure public key"

// Account returns the way into a finished box of the vagrant variant.
func Account() guest.Access { return guest.Access{User: "vagrant", Password: "vagrant"} }

// params are the parameters of 90-generalize.
type params struct {
	Account     string `json:"account"`
	Password    string `json:"password"` // the well-known one of every Vagrant box
	PublicKey   string `json:"publicKey"`
	BakeAccount string `json:"bakeAccount"`
}

// New makes the layer.
func New(parent, access string, host bake.Host) *bake.Layer {
	return &bake.Layer{ID: Name, Label: "sealing the box", Version: 1, Parent: parent, Access: access, Host: host,
		Scripts: Scripts(), Sealing: true}
}

// Scripts returns the layer's scripts. The proof tests them: only after the
// sealing is there anything to see.
func Scripts() []bake.Script {
	a := Account()
	return []bake.Script{{
		Name:   "90-generalize",
		Params: params{a.User, a.Password, insecureKey, guest.BakeAccount},
		Extra:  []string{"Complete-WboxSeal.ps1"},
	}}
}
