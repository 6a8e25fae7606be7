// Package lock is wbox.lock: every external input of a build by name, with its
// digest, size and source, and the selection that it was made for. It is a
// leaf: it reads and compares locks, knows nothing of where digests come from,
// and must not import anything of ours but fault. Writing the file is the
// builder's.
package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/wbox-dev/wbox/builder/fault"
)

// FileName is what a lock is called, beside a box file or in the output folder.
const FileName = "wbox.lock"

// What a lock begins with.
const (
	APIVersion = "wbox.dev/v1alpha1"
	Kind       = "Lock"
	comment    = "# Every external input of a box, by digest. Written by wbox: refresh it with \"wbox lock\", keep it with the box file.\n"
)

// Lock is what names stood for. Make one with New.
type Lock struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Checksum   string            `yaml:"checksum"`  // "sha256:…" of Selection
	Selection  map[string]string `yaml:"selection"` // what was asked for, by key of the box file
	Resolved   map[string]string `yaml:"resolved"`  // what names became that have no digest, such as kubernetes: v1.37.2
	Inputs     map[string]Input  `yaml:"inputs"`    // by name, such as "iso" or "kubernetes k8s.io/kubernetes@v1.37.2"
}

// Input is one external input.
type Input struct {
	Digest string `yaml:"digest"`           // see IsDigest
	Size   int64  `yaml:"size,omitempty"`   // bytes, 0 where unknown
	Source string `yaml:"source,omitempty"` // where it was found, for people: a file's name, a URL
}

// New returns the lock of a selection. Resolved values that are empty are left
// out.
func New(selection, resolved map[string]string, inputs map[string]Input) *Lock {
	resolved = maps.Clone(resolved)
	maps.DeleteFunc(resolved, func(_, v string) bool { return v == "" })
	return &Lock{APIVersion: APIVersion, Kind: Kind, Checksum: checksum(selection), Selection: selection, Resolved: resolved, Inputs: inputs}
}

// checksum is the digest of a selection's canonical JSON.
func checksum(selection map[string]string) string {
	if selection == nil {
		selection = map[string]string{}
	}
	data, err := json.Marshal(selection) // keys are sorted
	if err != nil {
		return "" // a map of strings can't fail
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Encode returns the lock as YAML. The same lock is always the same bytes.
func (l *Lock) Encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(comment)
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(l); err != nil {
		return nil, fmt.Errorf("writing the lock: %w", err)
	}
	return out.Bytes(), nil
}

// largest is more than any lock needs, in bytes.
const largest = 4 << 20

// Read reads a lock from a file. A file that does not exist is no lock and no
// error: nil, nil. One that can't be opened is a *fault.Problem of class
// fault.Host, one that is no lock one of class fault.Usage.
func Read(path string) (*Lock, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist), err != nil && !isFolder(filepath.Dir(path)):
		return nil, nil
	case err != nil:
		return nil, &fault.Problem{Class: fault.Host, Field: "lock", Value: path, Why: "can't be read", Err: err, Fix: "name another with --lock FILE"}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	l, err := Parse(data)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return l, nil
}

func isFolder(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

func unreadable(path string, err error) error {
	return &fault.Problem{Class: fault.Usage, Field: "lock", Value: path, Why: "can't be read", Err: err,
		Fix: "if it is wbox's, delete it and run wbox lock; if not, name another with --lock FILE"}
}

var digestForm = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|h1:[A-Za-z0-9+/]{43}=|git:[0-9a-f]{40,64})$`)

// IsDigest says whether text pins an input: "sha256:…", "sha512:…", a Go
// module's "h1:…", or a commit or tree of git, "git:…".
func IsDigest(text string) bool { return digestForm.MatchString(text) }

// Parse reads a lock. Unknown keys, malformed digests and a checksum that does
// not fit are errors.
func Parse(data []byte) (*Lock, error) {
	if len(data) > largest {
		return nil, errors.New("it is too large for a lock")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var l Lock
	switch err := dec.Decode(&l); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, oneLine(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in it")
	}
	if l.APIVersion != APIVersion || l.Kind != Kind {
		return nil, fmt.Errorf("it does not begin with apiVersion: %s and kind: %s", APIVersion, Kind)
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	return &l, nil
}

// oneLine keeps what a YAML error says in one printable line.
func oneLine(err error) error {
	var out []rune
	for _, r := range err.Error() {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		if len(out) < 200 {
			out = append(out, r)
		}
	}
	return errors.New(string(out))
}

// check refuses what wbox would not have written.
func (l *Lock) check() error {
	if l.Checksum != checksum(l.Selection) {
		return errors.New("its checksum does not fit its selection: it was edited or merged by hand")
	}
	for _, m := range []map[string]string{l.Selection, l.Resolved} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !printable(k) || !printable(m[k]) {
				return fmt.Errorf("%q: %q is not printable", k, m[k])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Inputs)) {
		switch in := l.Inputs[name]; {
		case !printable(name) || !printable(in.Source):
			return fmt.Errorf("the input %q is not printable", name)
		case !IsDigest(in.Digest):
			return fmt.Errorf("the input %s has no digest, but %q", name, in.Digest)
		case in.Size < 0:
			return fmt.Errorf("the input %s has the size %d", name, in.Size)
		}
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return len(s) < 1000
}
