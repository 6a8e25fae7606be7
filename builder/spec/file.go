package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wbox-dev/wbox/builder/fault"
)

// What a box file begins with, and the name under which it is looked for.
const (
	APIVersion  = "wbox.dev/v1alpha1"
	Kind        = "Box"
	DefaultFile = "wbox.yaml"
)

// header are the keys of a box file that no flag's field stands for.
type header struct {
	APIVersion string `key:"apiVersion"` // Required: always wbox.dev/v1alpha1.
	Kind       string `key:"kind"`       // Required: always Box.
	Preset     string `key:"preset"`     // Optional: a preset that fills in what the file does not say. Default: none.
}

// largestFile is more than any box file needs, in bytes.
const largestFile = 1 << 20

// document is a box file that has been read.
type document struct {
	Layer
	header
	presetPlace string // of the preset's name
	problems    []error
}

// read reads a box file, shown to people as name. Everything that is wrong with
// it is in the document's problems, each with line and column.
func read(name string, data []byte) *document {
	d := &document{Layer: Layer{origins: origins{}}}
	root, err := parse(data)
	if err != nil {
		d.problems = append(d.problems, syntaxProblem(name, err))
		return d
	}
	if root.Kind != yaml.MappingNode {
		d.problem(at(name, root), "", "holds no box", "begin it with apiVersion: "+APIVersion)
		return d
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if line := seen[key.Value]; line != 0 {
			d.problem(at(name, key)+": "+short(key.Value), "", fmt.Sprintf("is there twice, first in line %d", line), "remove one")
			continue
		}
		seen[key.Value] = key.Line
		d.entry(name, key, value)
	}
	d.checkHeader(name)
	return d
}

// parse returns the root of the only document.
func parse(data []byte) (*yaml.Node, error) {
	if len(data) > largestFile {
		return nil, errors.New("is too large for a box file")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) == 0:
		return nil, errors.New("is empty")
	case err != nil:
		return nil, err
	}
	if err := dec.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: a second document begins", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return doc.Content[0], nil
}

// syntaxProblem makes a Problem of what the YAML parser says, such as
// "yaml: line 3: did not find expected key".
func syntaxProblem(name string, err error) error {
	text, parser := strings.CutPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		name, text = name+":"+m[1], text[len(m[0]):]
	} else if parser && !regexp.MustCompile(`UTF|octet|Unicode|control`).MatchString(text) {
		name += ":1" // the parser leaves out the first line; only broken characters have none
	}
	return &fault.Problem{Class: fault.Usage, Field: name, Why: text, Fix: "a box file is YAML that begins with apiVersion: " + APIVersion}
}

// at writes where a node is, as compilers do.
func at(name string, n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", name, n.Line, n.Column) }

// short cuts a text that someone put into a file to what fits into a message.
func short(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

func (d *document) problem(field, value, why, fix string) {
	d.problems = append(d.problems, &fault.Problem{Class: fault.Usage, Field: field, Value: value, Why: why, Fix: fix})
}

// entry reads one key with its value.
func (d *document) entry(name string, key, value *yaml.Node) {
	place := at(name, value)
	switch key.Value {
	case "apiVersion", "kind", "preset":
		text, ok := d.text(place+": "+key.Value, value)
		if !ok {
			text = unreadable
		}
		switch key.Value {
		case "apiVersion":
			d.APIVersion = text
		case "kind":
			d.Kind = text
		default:
			d.Preset, d.presetPlace = strings.TrimSuffix(text, unreadable), place
		}
		if text != unreadable {
			d.checkFixed(place, key.Value, text)
		}
		return
	}
	for _, f := range Fields() {
		if f.Key == key.Value {
			if d.set(f, name, value) {
				d.given = append(d.given, f.Key)
				d.origins[f.Key] = place
			}
			return
		}
	}
	fix := "known are " + strings.Join(Keys(), ", ")
	if near := Nearest(key.Value, Keys()); near != "" {
		fix = "did you mean " + near + "?"
	}
	d.problem(at(name, key)+": "+short(key.Value), "", "is not known", fix)
}

// unreadable stands for a header's value that was refused already.
const unreadable = "\x00"

// Keys lists all keys that a box file may have.
func Keys() []string {
	keys := []string{"apiVersion", "kind", "preset"}
	for _, f := range Fields() {
		keys = append(keys, f.Key)
	}
	return keys
}

func (d *document) checkFixed(place, key, text string) {
	want := map[string]string{"apiVersion": APIVersion, "kind": Kind}[key]
	if want != "" && text != want {
		d.problem(place+": "+key, short(text), "is not known", "use "+want)
	}
}

func (d *document) checkHeader(name string) {
	if d.APIVersion == "" {
		d.problem(name+":1:1: apiVersion", "", "is required", "begin the file with apiVersion: "+APIVersion)
	}
	if d.Kind == "" {
		d.problem(name+":1:1: kind", "", "is required", "write kind: "+Kind)
	}
}

// readFile reads a box file from the disk. An unreadable one is a Problem of
// class fault.Usage, as all that is wrong with a configuration.
func readFile(path string) (*document, error) {
	p := &fault.Problem{Class: fault.Usage, Field: "-f", Value: path, Fix: "name a box file, such as " + DefaultFile}
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		p.Why = "does not exist"
		return nil, p
	case err == nil && fi.IsDir():
		p.Why = "is a folder"
		return nil, p
	}
	f, err := os.Open(path)
	if err != nil {
		p.Why, p.Err = "can't be read", err
		return nil, p
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err != nil {
		p.Why, p.Err = "can't be read", err
		return nil, p
	}
	d := read(path, data)
	d.rebase(path)
	return d, nil
}

// number reads a whole number as people write it.
func number(n *yaml.Node) (int, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		return 0, false
	}
	i, err := strconv.Atoi(n.Value)
	return i, err == nil
}
