package images

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// CNI is an image that a network plugin's manifest asks for.
type CNI struct {
	Component string
	Name      string // with its registry
	OS        string // "windows" for what only Windows nodes pull
	From      string // where its tag was read
}

// maxManifestFile is how long in bytes a manifest of a network plugin may be;
// Calico's operator has 2 MB.
const maxManifestFile = 16 << 20

// ParseCNI reads --cni: none, NAME@VERSION of a plugin whose images all carry
// its version, or a file with its manifest, whose images count then. Tags are
// never guessed: what lacks them is a *fault.Problem.
func ParseCNI(text string, windows bool) ([]CNI, error) {
	const field = "--cni"
	name, version, _ := strings.Cut(text, "@")
	if text == "" || text == "none" {
		return nil, nil
	}
	if !slices.Contains([]string{"calico", "antrea", "flannel"}, name) {
		data, err := readFile(text)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &fault.Problem{Class: fault.Usage, Field: field, Value: text, Why: "is neither a network plugin that is known nor a file", Fix: "use none, calico@VERSION, antrea@VERSION, or a file with a manifest"}
		case err != nil:
			return nil, &fault.Problem{Class: fault.Input, Field: field, Value: text, Why: "can't be read", Err: err, Fix: "name a file with a manifest"}
		}
		return manifestImages(field, text, data)
	}
	if name == "flannel" {
		return nil, &fault.Problem{Class: fault.Usage, Field: field, Value: text, Why: "has images with versions of their own", Fix: "name the file with its manifest (kube-flannel.yml)"}
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+[\w.-]*$`).MatchString(version) {
		return nil, &fault.Problem{Class: fault.Usage, Field: field, Value: text, Why: "names no version, and tags are not guessed", Fix: "write it as " + name + "@vX.Y.Z, or name a file with its manifest"}
	}
	return pluginImages(name, version, windows), nil
}

// pluginImages are those of a release: of Calico what manifests/calico.yaml and
// its Windows DaemonSet name (in quay.io since v3.31), of Antrea what
// antrea.yml and antrea-windows.yml name.
func pluginImages(name, version string, windows bool) []CNI {
	type entry struct{ repo, os string }
	var all []entry
	switch name {
	case "calico":
		registry := "quay.io/calico/"
		if minor, err := strconv.Atoi(strings.Split(version, ".")[1]); err == nil && strings.HasPrefix(version, "v3.") && minor <= 30 {
			registry = "docker.io/calico/"
		}
		all = []entry{{registry + "cni", ""}, {registry + "kube-controllers", ""}, {registry + "node", ""}, {registry + "cni-windows", "windows"}, {registry + "node-windows", "windows"}}
	case "antrea":
		const registry = "docker.io/antrea/"
		all = []entry{{registry + "antrea-agent-ubuntu", ""}, {registry + "antrea-controller-ubuntu", ""}, {registry + "antrea-windows", "windows"}}
	}
	var out []CNI
	for _, e := range all {
		if e.os == "" || windows {
			out = append(out, CNI{Component: path.Base(e.repo), Name: e.repo + ":" + version, OS: e.os, From: "--cni " + name + "@" + version})
		}
	}
	return out
}

var imageLine = regexp.MustCompile(`^\s*(?:-\s+)?"?image"?:\s*["']?([^\s"'#,]+)["']?,?\s*(?:#.*)?$`)

// manifestImages reads the images that a manifest names, each once.
func manifestImages(field, file string, data []byte) ([]CNI, error) {
	var out []CNI
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		m := imageLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		name, err := fullName(m[1])
		if err != nil {
			return nil, &fault.Problem{Class: fault.Input, Field: field, Value: file + ":" + strconv.Itoa(n), Why: "names an image that can't be mirrored (" + m[1] + ")", Err: err, Fix: "write it with a tag"}
		}
		if !slices.ContainsFunc(out, func(c CNI) bool { return c.Name == name }) {
			out = append(out, CNI{Component: path.Base(strings.SplitN(pathOf(name), ":", 2)[0]), Name: name, From: file})
		}
	}
	if err := s.Err(); err != nil {
		return nil, &fault.Problem{Class: fault.Input, Field: field, Value: file, Why: "is no manifest", Err: err, Fix: "name a YAML file with the plugin's manifest"}
	}
	if len(out) == 0 {
		return nil, &fault.Problem{Class: fault.Input, Field: field, Value: file, Why: "names no image", Fix: "name a YAML file with the plugin's manifest"}
	}
	return out, nil
}

// fullName fills in Docker's registry, as container runtimes do, and refuses a
// name without a tag.
func fullName(text string) (string, error) {
	host, rest, ok := strings.Cut(text, "/")
	switch {
	case !ok:
		text = "docker.io/library/" + text
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		text = "docker.io/" + host + "/" + rest
	}
	if strings.Contains(text, "@") {
		return "", errors.New("it is named by its digest, under which a mirror could not be asked for by a tag")
	}
	c := Client{}
	if _, err := c.Parse("image", text); err != nil {
		return "", err
	}
	return text, nil
}

func readFile(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxManifestFile {
		return nil, fmt.Errorf("it is no file of at most %d bytes", maxManifestFile)
	}
	return os.ReadFile(name)
}
