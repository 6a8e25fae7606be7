// Package updates is the layer of one pinned cumulative update. None can be
// chosen yet, so it has nothing to do and says so. It must not import another
// stage.
package updates

import "github.com/wbox-dev/wbox/builder/internal/bake"

// Name is the stage's id.
const Name = "updates"

// New makes the layer.
func New(parent, access string, host bake.Host) *bake.Layer {
	return &bake.Layer{ID: Name, Label: "installing updates", Version: 1, Parent: parent, Access: access, Host: host,
		Empty: "no cumulative update was asked for: the box is as old as its ISO"}
}
