package builder_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wbox-dev/wbox/"

// rows is the dependency rule, from the top down: a package may import what is
// in a lower row, and in its own row only itself (a folder and what is below
// it). The longest matching prefix decides the row. What a row's packages may
// import beside that is named in except.
var rows = [][]string{
	{"cmd", "plugins"},
	{"builder"},
	{"builder/spec"},
	{"builder/stages"}, // each folder below it is a package of its own here
	{"builder/internal/bake", "builder/media"}, // a medium is told apart by builder/iso
	{"builder/kube", "builder/component", "builder/hypervisor", "builder/guest", "builder/iso", "builder/disk", "builder/box", "builder/answerfile",
		"builder/network", "builder/publish", "builder/schedule", "images"},
	{"builder/internal/engine", "builder/internal/fetch", "builder/internal/gosource", "builder/internal/wine"},
	{"builder/internal/cas"},
	{"builder/lock", "builder/licence", "builder/quirks", "builder/stage", "builder/internal/exec",
		"builder/internal/wait", "builder/internal/atomicfile", "builder/internal/golden", "builder/internal/capacity"},
	{"builder/fault", "builder/report", "builder/internal/ctxio"},
	{"templates", "scripts"},
}

// except lists imports within a row or upwards that the rule allows, each with
// its reason.
var except = map[string]string{}

// only lists packages that may import of ours nothing but these, whatever their
// row allows. images is a library: it takes a Cache and a Sink and must know
// neither the store nor where Kubernetes comes from.
var only = map[string][]string{
	"images": {"images", "builder/report", "builder/fault"},
}

// fences are third-party modules that only some folders may import.
var fences = map[string][]string{
	"github.com/spf13/cobra":                                 {"cmd/wbox"},
	"github.com/cheggaaa/pb":                                 {"cmd/wbox/internal/ui"},
	"github.com/hashicorp/packer-plugin-sdk":                 {"plugins/packer-plugin-wbox"},
	"github.com/google/go-containerregistry":                 {"images", "builder/publish/oci"},
	"github.com/masterzen/winrm":                             {"builder/guest/winrm"},
	"github.com/bodgit/ntlmssp":                              {"builder/guest/winrm", "scripts/standin"},
	"software.sslmate.com/src/go-pkcs12":                     {"builder/guest", "scripts/standin"},
	"github.com/diskfs/go-diskfs":                            {"builder/disk", "scripts/standin"},
	"github.com/rogpeppe/go-internal":                        {"cmd/wbox"},
	"github.com/klauspost/pgzip":                             {"builder/box"},
	"go.yaml.in/yaml":                                        {"builder/spec", "builder/lock"},
	"github.com/wbox-dev/wbox/scripts/standin":               {"scripts/standin"},
	"github.com/wbox-dev/wbox/builder/guest/fake":            {},
	"github.com/wbox-dev/wbox/builder/guest/guesttest":       {},
	"github.com/wbox-dev/wbox/builder/hypervisor/fake":       {},
	"github.com/wbox-dev/wbox/builder/hypervisor/drivertest": {},
	"github.com/wbox-dev/wbox/builder/iso/isotest":           {"scripts/standin"},
	"github.com/wbox-dev/wbox/images/imagestest":             {},
	"github.com/wbox-dev/wbox/images/cachetest":              {},
}

// testSupport says whether a package exists for tests only: it may import what
// tests may, and nothing but tests may import it.
func testSupport(pkg string) bool {
	base := path.Base(pkg)
	return strings.HasSuffix(base, "test") || base == "fake" || strings.HasPrefix(pkg, "scripts/standin")
}

func row(pkg string) (n int, unit string) {
	best := -1
	for i, r := range rows {
		for _, prefix := range r {
			below := prefix != "builder" && strings.HasPrefix(pkg, prefix+"/") // a new package of builder must be listed
			if (pkg == prefix || below) && len(prefix) > len(unit) {
				best, unit = i, prefix
			}
		}
	}
	if unit == "builder/stages" {
		unit = strings.Join(strings.SplitN(pkg, "/", 4)[:min(3, strings.Count(pkg, "/")+1)], "/")
	}
	return best, unit
}

func within(pkg string, dirs []string) bool {
	for _, d := range dirs {
		if pkg == d || strings.HasPrefix(pkg, d+"/") {
			return true
		}
	}
	return false
}

// breach says how an import breaks the rule, or "".
func breach(from, to string) string {
	for fence, allowed := range fences {
		if (to == fence || strings.HasPrefix(to, fence+"/")) && !within(from, allowed) && !testSupport(from) {
			return "only " + strings.Join(allowed, ", ") + " may import it"
		}
	}
	ours, ok := strings.CutPrefix(to, module)
	if !ok || except[from+" "+ours] != "" {
		return ""
	}
	for pkg, allowed := range only {
		if within(from, []string{pkg}) && !within(ours, allowed) && !testSupport(from) {
			return pkg + " may import only " + strings.Join(allowed, ", ")
		}
	}
	fromRow, fromUnit := row(from)
	toRow, toUnit := row(ours)
	switch {
	case testSupport(from):
		return ""
	case fromRow < 0:
		return "the importing package is in no row of the rule"
	case toRow < 0:
		return "it is in no row of the rule"
	case toRow < fromRow:
		return "it is in a higher row"
	case toRow == fromRow && toUnit != fromUnit:
		return "it is in the same row"
	}
	return ""
}

func TestDependencyRule(t *testing.T) {
	root := ".."
	seen := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasOwnModule(p)) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		from := filepath.ToSlash(rel)
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			to, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			seen++
			if why := breach(from, to); why != "" {
				t.Errorf("%s imports %s: %s", p, to, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d imports seen: the walk is broken", seen)
	}
}

func hasOwnModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// TestTheRuleItself feeds imports that must be refused and some that must not.
func TestTheRuleItself(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"cmd/wbox/internal/cli", module + "builder", true},
		{"builder", module + "cmd/wbox/internal/ui", false},
		{"builder/stages/node", module + "builder/stages/cni", false},
		{"builder/stages/node", module + "builder/internal/bake", true},
		{"builder/kube", module + "builder/spec", false},
		{"builder/kube", module + "builder/guest", false},
		{"builder/guest/winrm", module + "builder/guest", true},
		{"builder/stage", module + "builder/kube", false},
		{"templates", module + "builder/fault", false},
		{"builder/guest", "github.com/masterzen/winrm", false},
		{"builder/guest/winrm", "github.com/masterzen/winrm/soap", true},
		{"builder/spec", "github.com/spf13/cobra", false},
		{"builder", module + "builder/hypervisor/fake", false},
		{"builder/stages/windows", module + "scripts/standin/winrmd", false},
		{"builder/strange", module + "builder/fault", false},
		{"images", "github.com/google/go-containerregistry/pkg/v1", true},
		{"builder/kube", "github.com/google/go-containerregistry/pkg/name", false},
		{"cmd/wbox/internal/cli", "github.com/google/go-containerregistry/pkg/name", false},
		{"images", module + "builder/report", true},
		{"images", module + "builder/fault", true},
		{"images", module + "builder/internal/wait", false},
		{"images", module + "builder/quirks", false},
		{"images", module + "builder/kube", false},
		{"builder", module + "images", true},
	} {
		if why := breach(c.from, c.to); (why == "") != c.ok {
			t.Errorf("%s -> %s: %q, want ok=%v", c.from, c.to, why, c.ok)
		}
	}
}
