package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Explained says why a stage would run.
type Explained struct {
	Reasons []string  // for people, one difference each; empty for a hit
	Nearest string    // key of the stored result that it was compared with, or ""
	Made    time.Time // when that one was made
}

// Explain says, for each stage of a plan, why it would run: how its key differs
// from that of the nearest result of the same stage among entries (those of the
// store, newest first), which is the one with the fewest differences, or the
// newest of several.
func (e *Engine) Explain(planned []Planned, entries []cas.Entry) []Explained {
	byName := map[string]Planned{}
	for _, p := range planned {
		byName[p.Stage.Name()] = p
	}
	out := make([]Explained, len(planned))
	for i, p := range planned {
		switch p.Status {
		case Miss:
			out[i] = e.explain(p, entries, byName)
		case Always:
			out[i].Reasons = []string{"it runs every time: " + p.Why}
		}
	}
	return out
}

func (e *Engine) explain(p Planned, entries []cas.Entry, byName map[string]Planned) Explained {
	if p.Key != "" {
		if why, found := e.Store.Missing(p.Key); found {
			return Explained{Reasons: []string{"its stored result can't be used: " + why}, Nearest: p.Key}
		}
	}
	var best Explained
	d := differ{stage: p.Stage, plan: byName}
	for _, old := range entries {
		if old.Stage != p.Stage.Name() || old.Key == p.Key {
			continue
		}
		lines, err := d.diff(old.Doc, p.Doc)
		if err != nil {
			continue // a key.json that can't be read explains nothing
		}
		if best.Nearest == "" || len(lines) < len(best.Reasons) {
			best = Explained{Reasons: lines, Nearest: old.Key, Made: old.Started}
		}
	}
	switch {
	case best.Nearest == "":
		best.Reasons = []string{"no result of this stage is in the store"}
	case len(best.Reasons) == 0: // all that differs is content that is yet to be made
		best.Reasons = []string{p.Why}
	}
	return best
}

// differ writes the differences of two keys of one stage.
type differ struct {
	stage stage.Stage
	plan  map[string]Planned
	lines []string
}

func (d differ) say(format string, args ...any) differ {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // a name out of a damaged key.json
			return '?'
		}
		return r
	}, fmt.Sprintf(format, args...))
	d.lines = append(d.lines, line)
	return d
}

// diff returns one line for each difference between two key.json.
func (d differ) diff(oldDoc, newDoc []byte) ([]string, error) {
	was, err := readDoc(oldDoc)
	if err != nil {
		return nil, err
	}
	is, err := readDoc(newDoc)
	if err != nil {
		return nil, err
	}
	if was.Schema != is.Schema {
		d = d.say("wbox makes keys in another way: %d -> %d", was.Schema, is.Schema)
	}
	if was.Fingerprint.Version != is.Fingerprint.Version {
		d = d.say("%s.version: %d -> %d, wbox makes it in another way", d.stage.Name(), was.Fingerprint.Version, is.Fingerprint.Version)
	}
	for _, name := range names(was.Inputs, is.Inputs) {
		d = d.input(name, was.Inputs[name], is.Inputs[name])
	}
	for _, name := range names(was.Fingerprint.Files, is.Fingerprint.Files) {
		a, b := was.Fingerprint.Files[name], is.Fingerprint.Files[name]
		switch {
		case a == b:
		case a == "":
			d = d.say("%s is new", name)
		case b == "":
			d = d.say("%s is gone", name)
		default:
			d = d.say("%s changed", name)
		}
	}
	d = d.value(d.stage.Name()+".params", was.Fingerprint.Params, is.Fingerprint.Params)
	return d.lines, nil
}

// readDoc reads a key.json. Numbers keep their digits.
func readDoc(b []byte) (keyDoc, error) {
	var doc keyDoc
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return keyDoc{}, fmt.Errorf("reading a key: %w", err)
	}
	if doc.Stage == "" {
		return keyDoc{}, errors.New("reading a key: it names no stage")
	}
	return doc, nil
}

func names[V any](maps ...map[string]V) []string {
	var out []string
	for _, m := range maps {
		for n := range m {
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return slices.Compact(out)
}

func (d differ) input(name, was, is string) differ {
	from := d.maker(inputNamed(d.stage, name))
	switch {
	case is == unknownInput:
		return d.say("inputs.%s: not here yet, its content decides", name)
	case strings.HasPrefix(is, unknownInput):
		return d.say("inputs.%s: made anew by %s, its content decides", name, strings.TrimPrefix(is, unknownInput))
	case was == is:
		return d
	case was == "":
		return d.say("inputs.%s is new: %s", name, abbreviate(is))
	case is == "":
		return d.say("inputs.%s is gone: %s", name, abbreviate(was))
	case from != "":
		return d.say("inputs.%s %s -> %s, made anew by %s", name, abbreviate(was), abbreviate(is), from)
	}
	return d.say("inputs.%s %s -> %s", name, abbreviate(was), abbreviate(is))
}

// maker names the stage that would make an input anew, or "".
func (d differ) maker(in stage.Input) string {
	p, ok := d.plan[in.From]
	for ok && p.Status == Empty { // it hands on what it got
		in = inputNamed(p.Stage, in.Output)
		p, ok = d.plan[in.From]
	}
	if ok && (p.Status == Miss || p.Status == Always) {
		return in.From
	}
	return ""
}

// abbreviate shortens the digest in "sha256:…" and "key:…".
func abbreviate(s string) string {
	kind, hex, ok := strings.Cut(s, ":")
	if ok && len(hex) > 12 {
		return kind + ":" + hex[:12]
	}
	return s
}

// value compares two values of the parameters; path leads to them.
func (d differ) value(path string, was, is any) differ {
	a, aMap := was.(map[string]any)
	b, bMap := is.(map[string]any)
	if aMap && bMap {
		for _, name := range names(a, b) {
			x, ok := a[name]
			y, ok2 := b[name]
			switch {
			case !ok:
				d = d.say("%s.%s: + %s", path, name, text(y))
			case !ok2:
				d = d.say("%s.%s: - %s", path, name, text(x))
			default:
				d = d.value(path+"."+name, x, y)
			}
		}
		return d
	}
	x, xList := was.([]any)
	y, yList := is.([]any)
	if xList && yList {
		return d.list(path, x, y)
	}
	if s, t := whole(was), whole(is); s != t {
		return d.say("%s: %s -> %s", path, cut(s), cut(t))
	}
	return d
}

// list compares two lists by what is in them.
func (d differ) list(path string, was, is []any) differ {
	count := map[string]int{}
	for _, v := range was {
		count[whole(v)]--
	}
	for _, v := range is {
		count[whole(v)]++
	}
	before := len(d.lines)
	for _, v := range names(count) {
		for ; count[v] > 0; count[v]-- {
			d = d.say("%s: + %s", path, cut(v))
		}
		for ; count[v] < 0; count[v]++ {
			d = d.say("%s: - %s", path, cut(v))
		}
	}
	if len(d.lines) == before && whole(was) != whole(is) {
		d = d.say("%s: in another order", path)
	}
	return d
}

// whole writes a value on one line: a text as it is, all else as JSON.
func whole(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func text(v any) string { return cut(whole(v)) }

// cut keeps a line readable. The end of a long value says the least.
func cut(s string) string {
	const most = 80
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

// KeyOf returns the key that a key.json stands for.
func KeyOf(doc []byte) (string, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("reading a key: %w", err)
	}
	return hashKey(v)
}
