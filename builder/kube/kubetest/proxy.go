package kubetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Release is one version that a module proxy has.
type Release struct {
	Version   string // such as "v1.37.2"
	Commit    string // told as its origin; empty: not told
	Time      string // RFC 3339; empty: not told
	GoVersion string // of its .go-version, such as "1.26.10"
	Broken    bool   // its kubelet does not compile for Windows
	NeedsGo   string // its go.mod asks for that Go; optional
}

// Proxy writes a module proxy with the fixture's modules into dir and returns
// the environment under which the go command uses it, and nothing beyond it:
// what is downloaded goes into a module cache below dir.
func Proxy(dir string, releases ...Release) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the proxy's folder: %w", err)
	}
	for _, r := range releases {
		if err := addRelease(dir, r); err != nil {
			return nil, fmt.Errorf("adding %s to the proxy: %w", r.Version, err)
		}
	}
	url := "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
	return []string{"GOPROXY=" + url, "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOMODCACHE=" + filepath.Join(dir, "cache")}, nil
}

// addRelease adds a release and its staging modules.
func addRelease(dir string, r Release) error {
	src, err := os.MkdirTemp("", "wbox-fixture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(src)
	if err := writeTree(src, r); err != nil {
		return err
	}
	for _, path := range append(staging(), "k8s.io/kubernetes") {
		root, version := src, r.Version
		if path != "k8s.io/kubernetes" {
			root, version = filepath.Join(src, "staging", "src", filepath.FromSlash(path)), "v0"+strings.TrimPrefix(r.Version, "v1")
		}
		if err := AddModule(dir, path, path, version, root, r); err != nil {
			return err
		}
	}
	return nil
}

// AddModule adds one version of one module, whose source is in root, to the
// proxy in dir; of r it tells commit and time. escaped is the path with "!" and
// a small letter for each capital one.
func AddModule(dir, escaped, path, version, root string, r Release) error {
	at := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	info := map[string]any{"Version": version}
	if r.Time != "" {
		info["Time"] = r.Time
	}
	if r.Commit != "" {
		info["Origin"] = map[string]string{"VCS": "git", "URL": "https://example.com/kubernetes", "Hash": r.Commit}
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{version + ".info": data, version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o644); err != nil {
			return err
		}
	}
	list, err := os.OpenFile(filepath.Join(at, "list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, version); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	return zip.CreateFromDir(file, module.Version{Path: path, Version: version}, root)
}
