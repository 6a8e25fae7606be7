package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/lock"
)

// Entry is a box to be offered.
type Entry struct {
	Name       string // OWNER/BOX
	Version    string // see Version
	Box        string // the finished box file; Publish copies it
	SHA256     string // Optional: what it must have, in small letters
	Move       bool   // rename Box into the folder where that is possible, instead of copying it
	Kubernetes string // the version in full, such as "v1.38.0-alpha.1.23+0123abcd"
	Windows    string // such as "Windows Server 2022"; empty for the stand-in
	Licence    string // such as "evaluation"; empty where there is none
	Clock      string // Optional: until when the licence lasts, for people
	StandIn    bool   // the box holds no Windows
}

// ErrChanged is wrapped by Publish's error where the box does not have the
// content that it must have.
var ErrChanged = errors.New("its content has changed since it was made")

// describe says what is inside, for people.
func (e Entry) describe() string {
	s := "Kubernetes " + e.Kubernetes
	if e.StandIn {
		return s + " on a stand-in: a small Linux that simulates Windows, for tests only"
	}
	s += " on " + e.Windows
	if e.Licence != "" {
		s += ", " + e.Licence + " licence"
	}
	if e.Clock != "" {
		s += " (" + e.Clock + ")"
	}
	return s
}

// Publish puts a box into dir, an existing folder, and offers it in dir's
// catalog, the path of which it returns. The box comes first and the catalog
// last, both by rename, so that a catalog never names what is not there.
// Versions offered before stay. A version never changes: the same box again is
// fine, another one is a *fault.Problem of class fault.Usage. One that is not
// what Entry says is an error that wraps ErrChanged. Two processes
// must not publish into one folder at a time.
func Publish(ctx context.Context, dir string, e Entry) (catalogPath string, err error) {
	if err := ValidName(e.Name); err != nil {
		return "", err
	}
	if !rubyForm.MatchString(e.Version) {
		return "", fmt.Errorf("publishing the box: Vagrant can't read the version %q", e.Version)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("publishing the box: %w", err)
	}
	c, err := catalogOf(dir, e.Name)
	if err != nil {
		return "", err
	}
	if c == nil {
		c = &catalog{keys: map[string]json.RawMessage{}}
	}
	sum, err := fileSum(ctx, e.Box)
	if err != nil {
		return "", fmt.Errorf("publishing the box: %w", err)
	}
	if e.SHA256 != "" && sum != e.SHA256 {
		return "", fmt.Errorf("publishing the box: %s: %w", e.Box, ErrChanged)
	}
	file := filepath.Join(dir, FileName(e.Name, e.Version))
	if p := c.find(e.Version); p != nil && !strings.EqualFold(optional(p, "checksum"), sum) {
		return "", &fault.Problem{Class: fault.Usage, Field: "--revision", Value: e.Version,
			Why: "the catalog offers another box under this version, and a published version never changes",
			Fix: "use a higher --revision, or another output folder"}
	}
	if err := place(ctx, e, file, sum); err != nil {
		return "", fmt.Errorf("publishing the box: %w", err)
	}
	if err := c.offer(e, file, sum); err != nil {
		return "", fmt.Errorf("publishing the box: %w", err)
	}
	data, err := c.encode()
	if err != nil {
		return "", fmt.Errorf("writing the catalog: %w", err)
	}
	catalogPath = filepath.Join(dir, CatalogFile)
	return catalogPath, atomicfile.Write(ctx, catalogPath, data, 0o644)
}

// place puts the box under its final name, unless it is there already.
func place(ctx context.Context, e Entry, file, sum string) error {
	if got, err := fileSum(ctx, file); err == nil && got == sum {
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if e.Move {
		if err := atomicfile.Rename(ctx, e.Box, file); err == nil || ctx.Err() != nil {
			return err
		}
		// Another file system, most likely: a copy shows what else is wrong.
	}
	in, err := os.Open(e.Box)
	if err != nil {
		return err
	}
	defer in.Close()
	return atomicfile.Func(ctx, file, 0o644, func(w io.Writer) error {
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(w, h), &watched{ctx: ctx, r: in}); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != sum {
			return errors.New("the box has changed while it was copied")
		}
		return nil
	})
}

// offer enters the box into the catalog.
func (c *catalog) offer(e Entry, file, sum string) error {
	r := c.release(e.Version)
	i := -1
	for j, p := range r.providers {
		if optional(p, "name") == "libvirt" {
			i = j
		}
	}
	if i < 0 {
		r.providers = append(r.providers, map[string]json.RawMessage{})
		i = len(r.providers) - 1
	}
	description := "Kubernetes nodes on Windows, made by wbox"
	if e.StandIn {
		description = "A stand-in for Kubernetes nodes on Windows, made by wbox for tests: no Windows inside"
	}
	for _, s := range []struct {
		keys  map[string]json.RawMessage
		key   string
		value any
	}{
		{c.keys, "name", e.Name},
		{c.keys, "description", description},
		{r.keys, "version", e.Version},
		{r.keys, "status", "active"},
		{r.keys, "description_markdown", e.describe()},
		{r.providers[i], "name", "libvirt"},
		{r.providers[i], "url", fileURL(file)},
		{r.providers[i], "checksum_type", "sha256"}, // small letters: older Vagrant refuses others
		{r.providers[i], "checksum", sum},
		{r.providers[i], "architecture", "amd64"},
		{r.providers[i], "default_architecture", true},
	} {
		if err := set(s.keys, s.key, s.value); err != nil {
			return err
		}
	}
	return nil
}

// fileURL returns an absolute path as a URL. Vagrant takes relative ones as
// seen from its user's working folder.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func fileSum(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &watched{ctx: ctx, r: f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Foreign returns the names in an output folder that are not ours, sorted:
// anything but a catalog, a lock, boxes, their manifests, and files of a run at
// work or killed, which begin with ".wbox". A folder that does not exist holds nothing.
func Foreign(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking into the output folder: %w", err)
	}
	var out []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular():
			out = append(out, name)
		case name == CatalogFile:
			if _, err := readCatalog(filepath.Join(dir, name)); err != nil {
				out = append(out, name)
			}
		case name == lock.FileName:
			if _, err := lock.Read(filepath.Join(dir, name)); err != nil {
				out = append(out, name)
			}
		case ownFile.MatchString(name), name == NetworkFile, strings.HasPrefix(name, ".wbox"):
		default:
			out = append(out, name)
		}
	}
	return out, nil
}
