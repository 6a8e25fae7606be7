package kube

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// ImageTags are the tags of those images whose versions kubeadm has built in:
// they belong to the kubeadm, not to the version that it is asked for, and move
// in patch releases too.
type ImageTags struct {
	Etcd    string `json:"etcd"`
	CoreDNS string `json:"coredns"`
	Pause   string `json:"pause"`
	From    string `json:"from"` // where they were read, for people
}

// constantsFile is where kubeadm's source has them.
const constantsFile = "cmd/kubeadm/app/constants/constants.go"

// ImageTagsOf reads the tags of a ref that src has resolved: of the source at
// exactly that ref, or of the kubeadm that was published with it. Where neither
// can be had, that is a *fault.Problem of class fault.Input.
func ImageTagsOf(ctx context.Context, src Source, ref Ref, opts Options, sink report.Sink) (ImageTags, error) {
	switch s := src.(type) {
	case *moduleSource:
		return s.imageTags(ctx, ref)
	case *gitSource:
		return gitImageTags(ctx, s.remote, ref.Commit, ref.Version, opts, sink)
	case *checkoutSource:
		return readImageTags(gosource.InDir(s.path), s.path, ref.Version)
	case *bucketSource:
		if s.kind == ci {
			return s.ciImageTags(ctx, ref, sink)
		}
	}
	if m, err := parseModule(field, ref.Version, opts); err == nil && semver.Build(ref.Version) == "" {
		return m.imageTags(ctx, ref)
	}
	return ImageTags{}, versionProblem(field, ref.Version, "is no release, and the programs alone don't say which etcd, coredns and pause belong to it",
		"give the source tree or git ref that they were built from")
}

// imageTags reads the source of a release.
func (s *moduleSource) imageTags(ctx context.Context, ref Ref) (ImageTags, error) {
	g, err := gosource.NewGoTool(ctx, about(s.opts.settings(), s.flag))
	if err != nil {
		return ImageTags{}, err
	}
	dir, err := os.MkdirTemp("", "wbox-kube-")
	if err != nil {
		return ImageTags{}, fmt.Errorf("making a folder for the go command: %w", err)
	}
	defer os.RemoveAll(dir)
	mod, err := s.main(ctx, g, dir)
	if err != nil {
		return ImageTags{}, err
	}
	return readImageTags(gosource.InDir(mod.Dir), mainModule+"@"+s.version, ref.Version)
}

// gitImageTags reads the source of a commit, or of one whose first digits are
// known.
func gitImageTags(ctx context.Context, remote, commit, version string, opts Options, sink report.Sink) (ImageTags, error) {
	m, err := gosource.OpenMirror(ctx, opts.settings(), remote, sink)
	if err != nil {
		return ImageTags{}, err
	}
	full, err := m.Find(ctx, commit)
	if errors.Is(err, gosource.ErrNoRef) {
		return ImageTags{}, versionProblem(field, version, "has a commit ("+commit+") that "+remote+" does not have", "name the repository with WBOX_KUBE_GIT_URL")
	}
	if err != nil {
		return ImageTags{}, err
	}
	return readImageTags(m.Read(ctx, full), "commit "+commit, version)
}

// readImageTags reads the tags out of a source tree.
func readImageTags(read gosource.FileReader, place, version string) (ImageTags, error) {
	data, err := read(constantsFile)
	if err == nil {
		var tags ImageTags
		if tags, err = parseImageTags(data, version); err == nil {
			tags.From = constantsFile + " of " + place
			return tags, nil
		}
	}
	return ImageTags{}, &fault.Problem{Class: fault.Input, Field: field, Value: place, Why: "has no kubeadm that says which images belong to it", Err: err,
		Fix: "give a release or a commit of Kubernetes"}
}

// parseImageTags reads the tags of kubeadm's constants, for one version.
func parseImageTags(source []byte, version string) (ImageTags, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "constants.go", source, parser.SkipObjectResolution)
	if err != nil {
		return ImageTags{}, fmt.Errorf("reading %s: %w", constantsFile, err)
	}
	values := map[string]ast.Expr{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
				for i, name := range v.Names {
					values[name.Name] = v.Values[i]
				}
			}
		}
	}
	c := constants(values)
	var t ImageTags
	var errs [3]error
	t.Etcd, errs[0] = c.text("DefaultEtcdVersion")
	t.CoreDNS, errs[1] = c.text("CoreDNSVersion")
	t.Pause, errs[2] = c.text("PauseVersion")
	if err := errors.Join(errs[:]...); err != nil {
		return ImageTags{}, err
	}
	if supported, err := c.etcd(version); err != nil {
		return ImageTags{}, err
	} else if supported != "" {
		t.Etcd = supported
	}
	return t, nil
}

// constants are the values of a file's names.
type constants map[string]ast.Expr

// text is the string that a name stands for.
func (c constants) text(name string) (string, error) {
	e, ok := c[name]
	if !ok {
		return "", fmt.Errorf("%s has no %s", constantsFile, name)
	}
	return c.eval(e, 0)
}

// eval evaluates a string, or a name of one.
func (c constants) eval(e ast.Expr, depth int) (string, error) {
	switch v := e.(type) {
	case *ast.BasicLit:
		if v.Kind == token.STRING {
			return strconv.Unquote(v.Value)
		}
	case *ast.ParenExpr:
		return c.eval(v.X, depth+1)
	case *ast.Ident:
		if next, ok := c[v.Name]; ok && depth < 10 {
			return c.eval(next, depth+1)
		}
	}
	return "", fmt.Errorf("%s has a value that is no string: %T", constantsFile, e)
}

// etcd is the version that kubeadm takes for a version of Kubernetes: the one of
// its minor, or of the nearest minor at either end of the table
// (EtcdSupportedVersion in the same file); empty where there is no table.
func (c constants) etcd(version string) (string, error) {
	table, ok := c["SupportedEtcdVersion"].(*ast.CompositeLit)
	if !ok || len(table.Elts) == 0 {
		return "", nil
	}
	minor, err := strconv.Atoi(minorOf(version))
	if err != nil {
		return "", fmt.Errorf("%q is no version", version)
	}
	lowest, highest := math.MaxInt, -1
	byMinor := map[int]string{}
	for _, e := range table.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return "", fmt.Errorf("%s has a table of etcd versions that is none", constantsFile)
		}
		key, ok := kv.Key.(*ast.BasicLit)
		if !ok {
			return "", fmt.Errorf("%s has a table of etcd versions without numbers", constantsFile)
		}
		n, err := strconv.Atoi(key.Value)
		if err != nil {
			return "", fmt.Errorf("reading the table of etcd versions: %w", err)
		}
		if byMinor[n], err = c.eval(kv.Value, 0); err != nil {
			return "", err
		}
		lowest, highest = min(lowest, n), max(highest, n)
	}
	return byMinor[max(lowest, min(highest, minor))], nil
}

// parseImageList reads what "kubeadm config images list" prints.
func parseImageList(text string) (ImageTags, error) {
	var t ImageTags
	for name, to := range map[string]*string{"etcd": &t.Etcd, "coredns": &t.CoreDNS, "pause": &t.Pause} {
		m := regexp.MustCompile(`(?m)^\S*/` + name + `:([\w][\w.-]{0,127})\s*$`).FindStringSubmatch(text)
		if m == nil {
			return ImageTags{}, fmt.Errorf("kubeadm lists no %s: %q", name, strings.TrimSpace(text[:min(len(text), 200)]))
		}
		*to = m[1]
	}
	return t, nil
}
