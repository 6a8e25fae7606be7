package engine

import (
	"context"
	"errors"

	"github.com/wbox-dev/wbox/builder/stage"
)

// errUnknown says that a key depends on content that is yet to be made.
var errUnknown = errors.New("not made yet")

// unknownInput stands, with the maker's name after it, for an input in the key
// of a plan whose content is yet to be made.
const unknownInput = "unknown:"

// Status says what a build would do about a stage.
type Status string

// What a build would do about a stage.
const (
	Hit    Status = "hit"    // its result is in the store
	Miss   Status = "miss"   // it would run
	Empty  Status = "empty"  // there is nothing to do
	Always Status = "always" // it runs every time
)

// Planned is one stage of a plan.
type Planned struct {
	Stage  stage.Stage
	Status Status
	Key    string // empty where it depends on content that is yet to be made
	Why    string // for people
	Doc    []byte // what the key is made of, as far as it is known
}

// Plan says what Build would do, without doing it, in the given order.
func (e *Engine) Plan(ctx context.Context, stages []stage.Stage) ([]Planned, error) {
	b, err := e.newBuild(stages)
	if err != nil {
		return nil, err
	}
	b.dryRun = true
	var out []Planned
	for _, s := range stages {
		p, err := b.plan(ctx, b.nodes[s.Name()])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (b *build) plan(ctx context.Context, n *node) (Planned, error) {
	p := Planned{Stage: n.Stage}
	if why := passThrough(n.Stage); why != "" {
		p.Status, p.Why = Empty, why
		return p, nil
	}
	k, err := n.key(ctx)
	p.Doc = k.doc
	switch {
	case errors.Is(err, errUnknown):
		p.Status, p.Why = Miss, "depends on content that is yet to be made"
		return p, nil
	case err != nil:
		return p, err
	}
	p.Key = k.key
	if v, ok := n.Stage.(stage.Volatile); ok && v.Volatile() != "" {
		p.Status, p.Why = Always, v.Volatile()
		return p, nil
	}
	_, ok, err := b.Store.Lookup(k.key)
	if err != nil {
		return p, err
	}
	p.Status, p.Why = Miss, "no result under this key"
	if ok {
		p.Status, p.Why = Hit, ""
	}
	return p, nil
}
