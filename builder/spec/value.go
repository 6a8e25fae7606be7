package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/network"
)

// set reads a field's value and says whether it could.
func (d *document) set(f Field, name string, n *yaml.Node) bool {
	field := at(name, n) + ": " + f.Key
	to := f.of(&d.values)
	switch f.Kind {
	case reflect.String:
		text, ok := d.text(field, n)
		to.SetString(text)
		return ok
	case reflect.Int:
		i, ok := number(n)
		if !ok {
			d.problem(field, shown(n), "is not a whole number", "write it as "+f.Key+": 2")
		}
		to.SetInt(int64(i))
		return ok
	case reflect.Bool:
		before := len(d.problems)
		to.SetBool(d.boolean(field, f.Key, n))
		return len(d.problems) == before
	case reflect.Slice:
		if f.Keys != nil {
			list, ok := d.registries(f, name, n)
			to.Set(reflect.ValueOf(list))
			return ok
		}
		list, ok := d.list(f, name, n)
		to.Set(reflect.ValueOf(list))
		return ok
	}
	return false
}

// text reads a text. A number is taken as it is written, so that versions and
// years need no quotes.
func (d *document) text(field string, n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null", n.Kind == yaml.ScalarNode && n.Value == "":
		d.problem(field, "", "has no value", "give it one, or remove the line")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!bool":
		d.problem(field, n.Value, "is true or false, not a text", `put it in quotes if it is meant: "`+n.Value+`"`)
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!timestamp"):
		return n.Value, true
	default:
		d.problem(field, shown(n), "is not a text", "write one value after the colon")
	}
	return "", false
}

// list reads a list of texts and notes where each is.
func (d *document) list(f Field, name string, n *yaml.Node) ([]string, bool) {
	if n.Kind != yaml.SequenceNode {
		d.problem(at(name, n)+": "+f.Key, shown(n), "is not a list", "write it as "+f.Key+": ["+example(f.Key)+"]")
		return nil, false
	}
	good := true
	var out []string
	for i, e := range n.Content {
		for e.Kind == yaml.AliasNode {
			e = e.Alias
		}
		text, ok := d.text(fmt.Sprintf("%s: %s[%d]", at(name, e), f.Key, i), e)
		if good = good && ok; ok {
			out = append(out, text)
			d.origins[f.Key+"="+text] = at(name, e)
		}
	}
	if len(n.Content) == 0 {
		d.problem(at(name, n)+": "+f.Key, "", "is an empty list", "give it values, or remove the line")
		good = false
	}
	return out, good
}

// example is an element of a list, for messages.
func example(key string) string {
	switch key {
	case "noProxy":
		return ".example.com"
	case "clusterNetworks":
		return "10.244.0.0/16"
	case "extraCAs":
		return "ca.pem"
	}
	return "libvirt"
}

// shown is a node's value in a message.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "{…}"
	case n.Kind == yaml.SequenceNode:
		return "[…]"
	case n.Tag == "!!null":
		return ""
	}
	return short(n.Value)
}

// keyOf returns the field's key of an entry of origins.
func keyOf(entry string) string {
	key, _, _ := strings.Cut(entry, "=")
	return key
}

// rebase makes the relative paths in a box file relative to the working folder.
func (d *document) rebase(file string) {
	dir := filepath.Dir(file)
	for _, f := range Fields() {
		if f.path == "" {
			continue
		}
		d.rebaseField(dir, f)
	}
}

func (d *document) rebaseField(dir string, f Field) {
	rebased := func(text string) string {
		switch {
		case f.path == "part":
			return component.Rebase(f.Flag, text, func(path string) string {
				if rooted(path) {
					return path
				}
				return relative(dir, path, true)
			})
		case text == "", rooted(text), strings.Contains(text, "://"):
		case f.path == "maybe" && !kube.IsPath(text, dir):
		case f.path == "archive" && !strings.HasSuffix(text, ".tar"):
		default:
			return relative(dir, text, f.path == "maybe")
		}
		return text
	}
	switch list := f.of(&d.values).Interface().(type) {
	case string:
		f.of(&d.values).SetString(rebased(list))
	case []string:
		for i, text := range list {
			list[i] = rebased(text)
			if place := d.origins[f.Key+"="+text]; place != "" {
				d.origins[f.Key+"="+list[i]] = place
			}
		}
	case []network.Registry:
		for i := range list {
			list[i].CA = rebased(list[i].CA)
		}
	}
}

// rooted says whether a path means the same from every folder of a disk. On
// Windows \bin is not absolute, since it lacks the disk, and not relative either.
func rooted(path string) bool { return filepath.IsAbs(path) || os.IsPathSeparator(path[0]) }

// relative joins a path to a folder. Where not everything is a path, the result
// can be told from what is none.
func relative(dir, path string, dotted bool) string {
	joined := filepath.Join(dir, filepath.FromSlash(strings.TrimSpace(path)))
	if dotted && !filepath.IsAbs(joined) && joined != "." && joined != ".." && !strings.HasPrefix(joined, ".."+string(filepath.Separator)) {
		joined = "." + string(filepath.Separator) + joined
	}
	return joined
}
