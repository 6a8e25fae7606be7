package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wbox-dev/wbox/builder/network"
)

// registryKeys are the keys of one of the registries, in the order of
// network.Registry.
var registryKeys = []string{"host", "mirrors", "plainHTTP", "ca", "skipVerify"}

// registries reads a list of mappings, and notes where each host is.
func (d *document) registries(f Field, name string, n *yaml.Node) ([]network.Registry, bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.problem(at(name, n)+": "+f.Key, shown(n), "is not a list of registries", "write - host: docker.io below it, and mirrors: [https://mirror.example.com] below that")
		return nil, false
	}
	before := len(d.problems)
	var out []network.Registry
	for i, e := range n.Content {
		for e.Kind == yaml.AliasNode {
			e = e.Alias
		}
		path := fmt.Sprintf("%s[%d]", f.Key, i)
		if e.Kind != yaml.MappingNode {
			d.problem(at(name, e)+": "+path, shown(e), "is not a registry", "write host: docker.io, and mirrors: [https://mirror.example.com] below it")
			continue
		}
		r := d.registry(name, path, e)
		d.origins[f.Key+"="+r.Host] = at(name, e)
		for _, m := range r.Mirrors {
			d.origins[f.Key+"="+m] = at(name, e)
		}
		out = append(out, r)
	}
	return out, len(d.problems) == before
}

// registry reads one of them.
func (d *document) registry(name, path string, n *yaml.Node) (r network.Registry) {
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		field := path + "." + short(key.Value)
		if slices.Contains(seen, key.Value) {
			d.problem(at(name, key)+": "+field, "", "is there twice", "remove one")
			continue
		}
		seen = append(seen, key.Value)
		place := at(name, value) + ": " + field
		switch key.Value {
		case "host":
			r.Host, _ = d.text(place, value)
		case "ca":
			r.CA, _ = d.text(place, value)
		case "mirrors":
			if value.Kind != yaml.SequenceNode {
				d.problem(place, shown(value), "is not a list", "write it as mirrors: [https://mirror.example.com]")
				continue
			}
			for _, m := range value.Content {
				if text, ok := d.text(at(name, m)+": "+field, m); ok {
					r.Mirrors = append(r.Mirrors, text)
				}
			}
		case "plainHTTP":
			r.PlainHTTP = d.boolean(place, key.Value, value)
		case "skipVerify":
			r.SkipVerify = d.boolean(place, key.Value, value)
		default:
			fix := "known are " + strings.Join(registryKeys, ", ")
			if near := Nearest(key.Value, registryKeys); near != "" {
				fix = "did you mean " + near + "?"
			}
			d.problem(at(name, key)+": "+field, "", "is not known", fix)
		}
	}
	if !slices.Contains(seen, "host") {
		d.problem(at(name, n)+": "+path+".host", "", "is required", "name the registry as in an image's name, such as docker.io")
	}
	return r
}

// boolean reads true or false.
func (d *document) boolean(place, key string, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		d.problem(place, shown(n), "is neither true nor false", "write "+key+": true")
		return false
	}
	return strings.EqualFold(n.Value, "true")
}
