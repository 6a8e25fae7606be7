// Package templates embeds the files that say what a box is made of: answer
// files for Windows Setup, the Vagrantfiles of finished boxes, and presets. It is data:
// it must not import anything of ours, and rendering lives with the packages
// that know the meaning (builder/answerfile, builder/box, builder/spec).
package templates

import "embed"

// FS holds the templates under their paths in this folder, such as
// "answer/2022.xml.tmpl".
//
//go:embed answer/*.tmpl vagrant/*.tmpl presets/*.yaml
var FS embed.FS
