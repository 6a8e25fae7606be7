package lock

import (
	"fmt"
	"maps"
	"slices"
)

// Change is one difference between two locks.
type Change struct {
	Selection bool   // what is asked for differs, not what it stands for
	Name      string // a key, or an input's name
	Old, New  string // a value or digest; empty: not there
}

// String writes a change as one line.
func (c Change) String() string {
	switch {
	case c.Old == "":
		return fmt.Sprintf("+ %s: %s", c.Name, c.New)
	case c.New == "":
		return fmt.Sprintf("- %s: %s", c.Name, c.Old)
	}
	return fmt.Sprintf("~ %s: %s -> %s", c.Name, c.Old, c.New)
}

// Diff returns what has to change in old to make it l: first the selection, then
// what names became, then inputs, each by name. Sizes and sources don't count:
// a digest says all.
func (l *Lock) Diff(old *Lock) []Change {
	return slices.Concat(
		changes(true, old.Selection, l.Selection),
		changes(false, old.Resolved, l.Resolved),
		changes(false, digests(old.Inputs), digests(l.Inputs)))
}

func digests(in map[string]Input) map[string]string {
	out := map[string]string{}
	for name, i := range in {
		out[name] = i.Digest
	}
	return out
}

func changes(selection bool, old, now map[string]string) []Change {
	all := maps.Clone(now)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, old)
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if old[name] != now[name] {
			out = append(out, Change{Selection: selection, Name: name, Old: old[name], New: now[name]})
		}
	}
	return out
}

// Keep takes over from old how inputs with the same digest were found, so that
// another name of the same file changes nothing.
func (l *Lock) Keep(old *Lock) {
	for name, in := range l.Inputs {
		if was, ok := old.Inputs[name]; ok && was.Digest == in.Digest {
			l.Inputs[name] = was
		}
	}
}
