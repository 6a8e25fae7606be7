// Package scripts holds what runs inside Windows, as data. Other packages put
// it onto seed volumes and into fingerprints; how it is used is written in
// guest/README.md. The package must not import anything of ours.
package scripts

import "embed"

// Guest holds the guest scripts and their module under the paths guest/NAME.
//
//go:embed guest/*.psm1 guest/*.ps1
var Guest embed.FS
