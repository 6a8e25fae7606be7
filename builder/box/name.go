package box

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// CatalogFile is the catalog's name in an output folder.
const CatalogFile = "catalog.json"

// nameForm is stricter than Vagrant, which takes even "../evil/x".
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// maxName keeps paths under Vagrant's home short enough for Windows, which
// stops at 260 characters (hashicorp/vagrant#5301).
const maxName = 100

// ValidName checks a box's name, OWNER/BOX. The error is a *fault.Problem of
// class fault.Usage.
func ValidName(name string) error {
	why := ""
	switch owner, rest, _ := strings.Cut(name, "/"); {
	case !nameForm.MatchString(name):
		why = "it is not OWNER/BOX, both of letters, digits, '.', '_' and '-' that begin with a letter or digit"
	case strings.HasSuffix(owner, "."), strings.HasSuffix(rest, "."):
		why = "a part ends with a dot, which Windows drops from folder names"
	case strings.Contains(name, "-VAGRANTSLASH-"), strings.Contains(name, "-VAGRANTCOLON-"):
		why = "it holds a word that Vagrant uses by itself"
	case len(name) > maxName:
		why = fmt.Sprintf("it has more than %d characters", maxName)
	default:
		return nil
	}
	return &fault.Problem{Class: fault.Usage, Field: "--name", Value: name, Why: why, Fix: "choose one such as local/wbox-ws2022-calico"}
}

// FileName is the name of a box's file in an output folder. name and version
// are valid.
func FileName(name, version string) string { return stem(name, version) + "-libvirt.box" }

// ManifestName is the name of the manifest beside a box.
func ManifestName(name, version string) string { return stem(name, version) + "-manifest.json" }

func stem(name, version string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest + "-" + version
}

// NetworkFile is the file beside a box that tells its nodes of the network.
const NetworkFile = "wbox-network.json"

// ownFile matches what FileName and ManifestName make.
var ownFile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*-[0-9]+\.[0-9]+\.[0-9A-Za-z.-]*-(libvirt\.box|manifest\.json)$`)
