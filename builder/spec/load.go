package spec

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/templates"
)

// Load lays flags over a box file over a preset and returns what is asked for,
// not defaulted. An empty name means no file, and the preset that the file
// names. All problems are reported together, as one *fault.Preflight with
// places such as "wbox.yaml:7:6"; values that could be read are then checked
// too, since the caller will get no further.
func Load(flags Layer, file, preset string) (*Spec, error) {
	layers := []Layer{flags}
	var problems []error
	presetField := "--preset"
	if file != "" {
		d, err := readFile(file)
		if err != nil {
			return nil, fault.Check(err)
		}
		problems = append(problems, d.problems...)
		layers = append(layers, d.Layer)
		if preset == "" && d.Preset != "" {
			preset, presetField = d.Preset, d.presetPlace+": preset"
		}
	}
	if preset != "" {
		l, err := readPreset(presetField, preset)
		if err != nil {
			problems = append(problems, err)
		}
		layers = append(layers, l)
	}
	s := Merge(layers...)
	if len(problems) == 0 {
		return s, nil
	}
	check := *s
	check.Default()
	for _, p := range fault.All(check.Validate()) {
		if p.Value != "" { // what is missing may be what could not be read
			problems = append(problems, s.locate(p))
		}
	}
	return nil, fault.Check(problems...)
}

// Presets lists the names of the presets, sorted.
func Presets() []string {
	files, err := fs.Glob(templates.FS, "presets/*.yaml")
	if err != nil {
		return nil // only for a malformed pattern
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// readPreset reads a preset, which has the form of a box file. An unknown one is
// a Problem of class fault.Usage about the given field.
func readPreset(field, name string) (Layer, error) {
	data, err := fs.ReadFile(templates.FS, "presets/"+name+".yaml")
	if err != nil || strings.ContainsAny(name, `/\`) {
		fix := "use one of " + strings.Join(Presets(), ", ")
		if near := Nearest(name, Presets()); near != "" {
			fix = "did you mean " + near + "? There are " + strings.Join(Presets(), ", ")
		}
		return Layer{}, &fault.Problem{Class: fault.Usage, Field: field, Value: short(name), Why: "is not known", Fix: fix}
	}
	d := read(name+".yaml", data)
	for k := range d.origins {
		d.origins[k] = "preset " + name
	}
	if d.Preset != "" {
		d.problem(d.presetPlace+": preset", d.Preset, "stands in a preset", "name it in a box file")
	}
	return d.Layer, errors.Join(d.problems...)
}
