// Command schemagen writes the JSON schema of box files, for editors, from the
// fields of spec.Spec and the comments beside them: go generate runs it. It must
// not be imported, and nothing at run time depends on it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/spec"
)

func main() {
	if err := run(".", "schema.json"); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

// run writes the schema of the package in dir.
func run(dir, file string) error {
	data, err := schema(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), data, 0o644) //nolint:gosec // part of the sources
}

// property is one key of a box file.
type property struct {
	Description string    `json:"description"`
	Type        any       `json:"type,omitempty"` // one name or several
	Const       string    `json:"const,omitempty"`
	Enum        []any     `json:"enum,omitempty"`
	Items       *property `json:"items,omitempty"`
	MinItems    int       `json:"minItems,omitempty"`

	// Of a mapping.
	Properties           map[string]property `json:"properties,omitempty"`
	Required             []string            `json:"required,omitempty"`
	AdditionalProperties *bool               `json:"additionalProperties,omitempty"`
}

// schema returns the schema as JSON, ending in a line feed.
func schema(dir string) ([]byte, error) {
	comments, err := comments(dir)
	if err != nil {
		return nil, err
	}
	properties := map[string]property{
		"apiVersion": {Const: spec.APIVersion},
		"kind":       {Const: spec.Kind},
		"preset":     {Type: "string", Enum: values(spec.Presets())},
	}
	for _, f := range spec.Fields() {
		properties[f.Key] = typed(f)
	}
	for _, key := range spec.Keys() {
		p, ok := properties[key]
		p.Description = comments[key]
		if !ok || !documented.MatchString(p.Description) {
			return nil, fmt.Errorf("%s: its comment says %q; write \"Required: …\" or \"Optional: … Default: …\"", key, p.Description)
		}
		properties[key] = p
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(map[string]any{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "wbox box file, " + spec.APIVersion,
		"description": "What wbox build, plan and lock are asked for. Flags win over the file, the file over its preset.",
		"type":        "object", "properties": properties, "required": []string{"apiVersion", "kind"}, "additionalProperties": false,
	})
	return out.Bytes(), err
}

var documented = regexp.MustCompile(`^(Required: .+\.|Optional: .+\. Default: .+\.)$`)

// typed returns what a field's value looks like in YAML, where a number need not
// be quoted to be a text.
func typed(f spec.Field) property {
	switch {
	case f.Enum != nil:
		return property{Enum: values(f.Enum)}
	case f.Kind == reflect.Int:
		return property{Type: "integer"}
	case f.Kind == reflect.Bool:
		return property{Type: "boolean"}
	case f.Keys != nil:
		return property{Type: "array", Items: registry(f.Keys), MinItems: 1}
	case f.Kind == reflect.Slice:
		return property{Type: "array", Items: &property{Type: "string", Description: "One of them."}, MinItems: 1}
	}
	return property{Type: []string{"string", "number"}}
}

// registry describes one of the registries.
func registry(keys []string) *property {
	closed := false
	p := &property{Description: "One of them.", Type: "object", Properties: map[string]property{}, Required: []string{"host"}, AdditionalProperties: &closed}
	known := map[string]property{
		"host":       {Description: "As in an image's name, such as docker.io or registry.lan:5000; _default stands for all that are not named.", Type: "string"},
		"mirrors":    {Description: "URLs that are tried in this order before the registry itself.", Type: "array", Items: &property{Description: "One of them.", Type: "string"}},
		"plainHTTP":  {Description: "The registry itself speaks HTTP only.", Type: "boolean"},
		"ca":         {Description: "A file of certificates (PEM) for the registry and its mirrors.", Type: "string"},
		"skipVerify": {Description: "Certificates are not checked, which is for trials only.", Type: "boolean"},
	}
	for _, k := range keys {
		p.Properties[k] = known[k]
	}
	return p
}

// values lists texts, and the numbers that are written like them.
func values(texts []string) []any {
	var out []any
	for _, t := range texts {
		out = append(out, t)
		if n, err := strconv.Atoi(t); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// comments returns the comment beside each struct field that has a key.
func comments(dir string) (map[string]string, error) {
	out := map[string]string{}
	for _, file := range []string{"spec.go", "file.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || f.Tag == nil {
				return true
			}
			tag, err := strconv.Unquote(f.Tag.Value)
			if key := reflect.StructTag(tag).Get("key"); err == nil && key != "" {
				out[key] = strings.TrimSpace(f.Comment.Text())
			}
			return true
		})
	}
	return out, nil
}
