package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/wbox-dev/wbox/builder/fault"
)

// catalog is a catalog file. What we don't know of it is kept as it is, at
// every level: somebody may have added it.
type catalog struct {
	keys     map[string]json.RawMessage // all but "versions"
	versions []*release
}

// release is one element of "versions".
type release struct {
	version   string
	keys      map[string]json.RawMessage // all but "providers"
	providers []map[string]json.RawMessage
}

// maxCatalog is what Vagrant reads of a local catalog, in bytes.
const maxCatalog = 20 << 20

// readCatalog reads the catalog of an output folder; nil where there is none.
// Whatever else lies there under its name is a *fault.Problem.
func readCatalog(path string) (*catalog, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no catalog is no error
	}
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCatalog+1))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	c, err := parseCatalog(data)
	if err != nil {
		return nil, &fault.Problem{Class: fault.Usage, Field: "-o", Value: path,
			Why: "this file is not a catalog of boxes", Fix: "choose another output folder, or move the file away", Err: err}
	}
	return c, nil
}

// parseCatalog is strict about what we rely on.
func parseCatalog(data []byte) (*catalog, error) {
	if len(data) > maxCatalog {
		return nil, fmt.Errorf("it has more than %d bytes", maxCatalog)
	}
	var c catalog
	if err := decode(data, &c.keys); err != nil {
		return nil, err
	}
	var raw []map[string]json.RawMessage
	if v, ok := c.keys["versions"]; ok {
		if err := decode(v, &raw); err != nil {
			return nil, fmt.Errorf("versions: %w", err)
		}
	}
	delete(c.keys, "versions")
	if _, err := text(c.keys, "name"); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, keys := range raw {
		r := release{keys: keys}
		var err error
		if r.version, err = text(keys, "version"); err != nil {
			return nil, fmt.Errorf("versions[%d]: %w", i, err)
		}
		if seen[r.version] {
			return nil, fmt.Errorf("versions[%d]: %s is there twice", i, r.version)
		}
		seen[r.version] = true
		if v, ok := keys["providers"]; ok {
			if err := decode(v, &r.providers); err != nil {
				return nil, fmt.Errorf("versions[%d].providers: %w", i, err)
			}
		}
		delete(keys, "providers")
		for j, p := range r.providers {
			if _, err := text(p, "name"); err != nil {
				return nil, fmt.Errorf("versions[%d].providers[%d]: %w", i, j, err)
			}
		}
		c.versions = append(c.versions, &r)
	}
	return &c, nil
}

// decode reads one JSON value with nothing behind it, null excluded.
func decode(data []byte, into any) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return errors.New("it is null")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end")
	}
	return nil
}

// text returns a key that must hold a text.
func text(keys map[string]json.RawMessage, key string) (string, error) {
	var s string
	raw, ok := keys[key]
	if !ok {
		return "", fmt.Errorf("%s is missing", key)
	}
	if err := decode(raw, &s); err != nil || s == "" {
		return "", fmt.Errorf("%s is not a text", key)
	}
	return s, nil
}

// optional returns a key's text, "" where there is none.
func optional(keys map[string]json.RawMessage, key string) string {
	s, err := text(keys, key)
	if err != nil {
		return ""
	}
	return s
}

func (c *catalog) name() string { return optional(c.keys, "name") }

// find returns the libvirt provider of a version, nil where there is none.
func (c *catalog) find(version string) map[string]json.RawMessage {
	if c == nil {
		return nil
	}
	for _, r := range c.versions {
		if r.version != version {
			continue
		}
		for _, p := range r.providers {
			if optional(p, "name") == "libvirt" {
				return p
			}
		}
	}
	return nil
}

// release returns the version's entry, made at the end where there is none.
func (c *catalog) release(version string) *release {
	i := slices.IndexFunc(c.versions, func(r *release) bool { return r.version == version })
	if i < 0 {
		c.versions = append(c.versions, &release{version: version, keys: map[string]json.RawMessage{}})
		i = len(c.versions) - 1
	}
	return c.versions[i]
}

// set stores a value, which must be one that JSON can hold.
func set(keys map[string]json.RawMessage, key string, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		keys[key] = raw
	}
	return err
}

// encode returns the catalog as JSON with sorted keys.
func (c *catalog) encode() ([]byte, error) {
	versions := []map[string]any{}
	for _, r := range c.versions {
		v := map[string]any{}
		if r.providers != nil {
			v["providers"] = r.providers
		}
		for k, raw := range r.keys {
			v[k] = raw
		}
		versions = append(versions, v)
	}
	all := map[string]any{"versions": versions}
	for k, raw := range c.keys {
		all[k] = raw
	}
	data, err := json.MarshalIndent(all, "", "  ")
	return append(data, '\n'), err
}

// Published returns the SHA-256 of the libvirt box that dir's catalog offers
// under a name and version, "" where it offers none, so that a build can be
// refused before it starts. A file that is no catalog, or another box's, is a
// *fault.Problem of class fault.Usage.
func Published(_ context.Context, dir, name, version string) (string, error) {
	c, err := catalogOf(dir, name)
	if err != nil {
		return "", err
	}
	return optional(c.find(version), "checksum"), nil
}

// catalogOf reads dir's catalog, which must be that of the named box.
func catalogOf(dir, name string) (*catalog, error) {
	path := filepath.Join(dir, CatalogFile)
	c, err := readCatalog(path)
	if err != nil || c == nil || c.name() == name {
		return c, err
	}
	return nil, &fault.Problem{Class: fault.Usage, Field: "-o", Value: path,
		Why: "this catalog offers another box, " + c.name(), Fix: "choose another output folder, or use --name " + c.name()}
}
