package spec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/network"
)

// Field is one thing that a user may ask for.
type Field struct {
	Key  string       // in a box file, such as "k8sBase"
	Flag string       // such as "--k8s-base"
	Kind reflect.Kind // String, Int, Bool, or Slice for a list
	Keys []string     // of the mappings that a list holds; nil: it holds texts
	Enum []string     // all values that are taken; nil: not a choice of few
	path string       // "always", "maybe" where other values are no paths, "part" where one may follow a name, "archive" where only a .tar is one
	at   int          // in the struct
}

// Fields lists what may be asked for, in the order of Spec.
func Fields() []Field {
	var out []Field
	t := reflect.TypeFor[Spec]()
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("key")
		if key == "" {
			continue
		}
		field := Field{Key: key, Flag: f.Tag.Get("flag"), Kind: f.Type.Kind(), Enum: choices(key), path: f.Tag.Get("path"), at: i}
		if f.Type == reflect.TypeFor[[]network.Registry]() {
			field.Keys = slices.Clone(registryKeys)
		}
		out = append(out, field)
	}
	return out
}

// choices returns the values that a field takes, where they are few.
func choices(key string) []string {
	switch key {
	case "windows":
		return slices.Clone(releases)
	case "edition":
		return slices.Clone(editions)
	case "activate":
		return slices.Clone(activate)
	}
	return nil
}

// of returns the field's value in s, to be read or set.
func (f Field) of(s *Spec) reflect.Value { return reflect.ValueOf(s).Elem().Field(f.at) }

// byFlag finds the field that a Problem is about.
func byFlag(flag string) (Field, bool) {
	if flag == "-o" {
		flag = "--output"
	}
	for _, f := range Fields() {
		if f.Flag == flag {
			return f, true
		}
	}
	return Field{}, false
}

// Nearest returns the known word that text was most likely meant to be, or "".
// Case, dashes and underscores do not count, so that a flag's spelling is
// found too.
func Nearest(text string, known []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s))
	}
	best, least := "", len(text)
	for _, k := range known {
		d := distance(plain(text), plain(k))
		if d <= max(1, len(k)/3) && d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour until a is b. Long texts are compared by their beginnings.
func distance(a, b string) int {
	const most = 64
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
