// Package templates embeds the files that say what a box is made of: answer
// files for Windows Setup and the Vagrantfiles of finished boxes. It is data:
// it must not import anything of ours, and rendering lives with the packages
// that know the meaning (builder/answerfile, builder/box).
package templates

import "embed"

// FS holds the templates under their paths in this folder, such as
// "answer/2022.xml.tmpl".
//
//go:embed answer/*.tmpl vagrant/*.tmpl
var FS embed.FS
