package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/internal/gosource"
)

// mainModule is the module path of Kubernetes itself.
const mainModule = "k8s.io/kubernetes"

// tree is what a Kubernetes source tree says about how to build it.
type tree struct {
	mod     *modfile.File
	staging []string // modules that the tree carries under staging/, required ones only
	golang  string   // the go line of go.mod, such as "go1.26.0"
	pinned  string   // the toolchain of the official build, such as "go1.26.10"; empty where not said
	tags    []string // build tags of the official build
	guessed bool     // the tags come from our table
}

// readTree reads the Kubernetes source in dir.
func readTree(dir, ver string) (*tree, error) { return readTreeFrom(gosource.InDir(dir), ver) }

// readTreeFrom reads what a Kubernetes source says of itself.
func readTreeFrom(read gosource.FileReader, ver string) (*tree, error) {
	data, err := read("go.mod")
	if err != nil {
		return nil, err
	}
	t := &tree{}
	if t.mod, err = modfile.Parse("go.mod", data, nil); err != nil {
		return nil, fmt.Errorf("reading go.mod of Kubernetes: %w", err)
	}
	if t.mod.Module == nil || t.mod.Module.Mod.Path != mainModule || t.mod.Go == nil {
		return nil, errors.New("its go.mod is not that of " + mainModule)
	}
	t.golang = "go" + t.mod.Go.Version
	required := map[string]bool{}
	for _, r := range t.mod.Require {
		required[r.Mod.Path] = true
	}
	for _, r := range t.mod.Replace {
		if isStaging(r) && required[r.Old.Path] {
			t.staging = append(t.staging, r.Old.Path)
		}
	}
	if len(t.staging) == 0 {
		return nil, errors.New("its go.mod names no staging modules")
	}
	switch data, err := read(".go-version"); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil:
		if v := strings.TrimSpace(string(data)); regexp.MustCompile(`^1\.\d+(\.\d+|rc\d+)?$`).MatchString(v) {
			t.pinned = "go" + v
		}
	}
	script, err := read("hack/lib/golang.sh")
	switch {
	case err == nil:
		t.tags = buildTags(string(script))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if t.tags == nil {
		t.tags, t.guessed = knownTags(ver), true
	}
	return t, nil
}

// isStaging says whether r replaces a module by a folder under staging/.
func isStaging(r *modfile.Replace) bool {
	return r.New.Version == "" && strings.HasPrefix(r.New.Path, "./staging/")
}

// stagingVersion is the version under which the staging modules of a release
// are published: v1.37.2 -> v0.37.2.
func stagingVersion(ver string) string { return "v0" + strings.TrimPrefix(ver, semver.Major(ver)) }

// outerMod returns the go.mod of a module that builds Kubernetes as a
// dependency: the tree's own one (its requirements and its godebug line count
// only in the main module) with the staging folders replaced by the published
// modules. Without these there are only requirements on v0.0.0, which no proxy
// has (golang/go#32776, kubernetes/kubernetes#79384).
func (t *tree) outerMod(ver string) ([]byte, error) {
	return gosource.OuterMod(t.mod, "wbox.invalid/kubernetes", mainModule, ver, func(r *modfile.Replace) string {
		if isStaging(r) {
			return stagingVersion(ver)
		}
		return ""
	})
}

// buildTags reads the build tags from the gotags= line of hack/lib/golang.sh,
// variables in it filled in as for a build without debugging. It returns nil
// where the script does not look as expected.
func buildTags(script string) []string {
	line := regexp.MustCompile(`(?m)^\s*gotags="([^"$]*(?:\$\{\w+\}[^"$]*)*)`).FindStringSubmatch(script)
	if line == nil {
		return nil
	}
	text := regexp.MustCompile(`\$\{\w+\}`).ReplaceAllStringFunc(line[1], func(v string) string {
		name := regexp.QuoteMeta(strings.Trim(v, "${}"))
		value := ""
		for _, m := range regexp.MustCompile(`(?m)^\s*`+name+`="([^"$]+)"`).FindAllStringSubmatch(script, -1) {
			value = m[1]
		}
		return value
	})
	var tags []string
	for _, tag := range strings.Split(text, ",") {
		if tag = strings.TrimSpace(tag); tag == "" {
			continue
		}
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`).MatchString(tag) {
			return nil
		}
		tags = append(tags, tag)
	}
	return tags
}

// knownTags are the tags by minor version, as read from the scripts of the
// releases (kubernetes/kubernetes, hack/lib/golang.sh).
func knownTags(ver string) []string {
	tags := []string{"selinux", "notest"}
	minor, _ := strconv.Atoi(minorOf(ver))
	if minor >= 34 {
		tags = append(tags, "grpcnotrace")
	}
	if minor >= 38 {
		tags = append(tags, "kustomize_disable_go_plugin_support")
	}
	return tags
}
