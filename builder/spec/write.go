package spec

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Encode writes a box file that asks for what s does: the keys given, in the
// order of Spec, of which those that have no value are left out. Paths are
// written as they are.
func (s *Spec) Encode(comment string, keys ...string) ([]byte, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode, HeadComment: comment}
	add := func(key string, value any) error {
		v := &yaml.Node{}
		if err := v.Encode(value); err != nil {
			return fmt.Errorf("writing %s: %w", key, err)
		}
		doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, v)
		return nil
	}
	for _, h := range [][2]string{{"apiVersion", APIVersion}, {"kind", Kind}} {
		if err := add(h[0], h[1]); err != nil {
			return nil, err
		}
	}
	for _, f := range Fields() {
		value := f.of(s)
		if !slices.Contains(keys, f.Key) || value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0 {
			continue
		}
		if err := add(f.Key, value.Interface()); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("writing a box file: %w", err)
	}
	return out.Bytes(), enc.Close()
}
