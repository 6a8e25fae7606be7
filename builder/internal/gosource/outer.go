package gosource

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/mod/modfile"
)

// OuterMod returns the go.mod of a module called name in which a module is
// compiled as a dependency: the module's own one (its requirements, its
// replacements and its godebug line count only in the main module), with a
// requirement of itself. Folders that it replaces modules by are not part of a
// module as it is published: replaced says which version stands for one, "" for
// none, which is an error.
func OuterMod(mod *modfile.File, name, path, version string, replaced func(r *modfile.Replace) string) ([]byte, error) {
	data, err := mod.Format()
	if err != nil {
		return nil, fmt.Errorf("formatting go.mod: %w", err)
	}
	f, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil, fmt.Errorf("copying go.mod: %w", err)
	}
	err = f.AddModuleStmt(name)
	for _, r := range mod.Replace {
		if r.New.Version != "" {
			continue
		}
		if v := replaced(r); v != "" {
			err = errors.Join(err, f.AddReplace(r.Old.Path, "", r.Old.Path, v))
		} else {
			err = errors.Join(err, fmt.Errorf("go.mod replaces %s by the folder %s, which the module does not carry", r.Old.Path, r.New.Path))
		}
	}
	err = errors.Join(err, f.AddRequire(path, version))
	if err != nil {
		return nil, fmt.Errorf("writing go.mod: %w", err)
	}
	f.Cleanup()
	return f.Format()
}

// WriteOuterModule writes a module into dir in which m, which was downloaded, is
// compiled. Its go.sum has m's digest, so that the go command refuses whatever
// else a proxy would serve.
func WriteOuterModule(dir string, m Module) error {
	data, err := os.ReadFile(filepath.Join(m.Dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading go.mod of %s: %w", m.Path, err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return fmt.Errorf("reading go.mod of %s: %w", m.Path, err)
	}
	gomod, err := OuterMod(mod, "wbox.invalid/outer", m.Path, m.Version, func(*modfile.Replace) string { return "" })
	if err != nil {
		return err
	}
	gosum, err := os.ReadFile(filepath.Join(m.Dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // one without dependencies has none
		return fmt.Errorf("reading go.sum of %s: %w", m.Path, err)
	}
	if len(gosum) > 0 && gosum[len(gosum)-1] != '\n' {
		gosum = append(gosum, '\n')
	}
	gosum = append(gosum, m.Path+" "+m.Version+" "+m.Sum+"\n"...)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), gomod, 0o644); err != nil {
		return fmt.Errorf("writing the module of the build: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), gosum, 0o644); err != nil {
		return fmt.Errorf("writing the module of the build: %w", err)
	}
	return nil
}

// ReadInfo reads commit and time (RFC 3339 in UTC) from the answer of a module
// proxy, each empty where it doesn't say. Its time is that of the commit, which
// stands in for the moment of the official build because it is the same on every
// machine.
func ReadInfo(path string) (commit, date string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	var info struct {
		Time   time.Time
		Origin struct{ Hash string }
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return "", "", err
	}
	if regexp.MustCompile(`^[0-9a-f]{40,64}$`).MatchString(info.Origin.Hash) {
		commit = info.Origin.Hash
	}
	if !info.Time.IsZero() {
		date = info.Time.UTC().Format("2006-01-02T15:04:05Z")
	}
	return commit, date, nil
}
