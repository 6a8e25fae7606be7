// Package engine runs a build: it finds out on demand, from the wanted results
// backwards, what is in the store already, and runs the rest, independent
// stages side by side. It knows stages only by their contract and must not
// import spec, a stage or a capability.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Engine runs stages over one store.
type Engine struct {
	Store *cas.Store
	Sink  report.Sink
	RunID string // of this run, recorded in results
	Run   string // this run's folder

	Expected map[string]time.Duration // Optional: how long stages are expected to take, by name; only reported
}

// Built is what became of one stage.
type Built struct {
	Stage       stage.Stage
	Key         string
	Hit         bool   // the result was in the store
	PassThrough string // why there was nothing to do; then Result is nil
	Result      *cas.Result
}

// build is the state of one Build or Plan.
type build struct {
	*Engine
	order  []stage.Stage
	nodes  map[string]*node
	vm     *semaphore.Weighted
	dryRun bool

	verified memo // see verifyInputs

	mu      sync.Mutex
	failure error  // the first stage that failed by itself, see fail
	cancel  func() // ends all stages
}

// fail remembers the first failure and cancels what else runs. Those who wait
// for both a failed stage and one that it cancelled may hear of either first,
// and a stage that another target started is none of their errgroup's. A failure
// that stands was the first, whenever it is told.
func (b *build) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil || fault.Stands(err) && !fault.Stands(b.failure) {
		b.failure = err
		b.cancel()
	}
}

// node is one stage of a build; its key and its result are worked out once.
type node struct {
	stage.Stage
	key    func(context.Context) (keyed, error)
	ensure func(context.Context) (Built, error)
}

type keyed struct {
	key string
	doc []byte
}

// newBuild checks the graph: every input names an output of an earlier stage.
func (e *Engine) newBuild(stages []stage.Stage) (*build, error) {
	b := &build{Engine: e, order: stages, nodes: map[string]*node{}, vm: semaphore.NewWeighted(1)}
	for _, s := range stages {
		if b.nodes[s.Name()] != nil {
			return nil, fmt.Errorf("stage %s is listed twice", s.Name())
		}
		for _, in := range s.Inputs() {
			if in.From == "" {
				continue
			}
			p := b.nodes[in.From]
			if p == nil {
				return nil, fmt.Errorf("stage %s uses %s, which does not come before it", s.Name(), in.From)
			}
			if _, ok := output(p.Stage, in.Output); !ok {
				return nil, fmt.Errorf("stage %s uses %s of %s, which makes no such output", s.Name(), in.Output, in.From)
			}
		}
		n := &node{Stage: s}
		n.key = once(func(ctx context.Context) (keyed, error) { return b.key(ctx, n) })
		n.ensure = once(func(ctx context.Context) (Built, error) { return b.ensure(ctx, n) })
		b.nodes[s.Name()] = n
	}
	return b, nil
}

// once makes f run at most once; every caller gets its answer.
func once[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var (
		o   sync.Once
		v   T
		err error
	)
	return func(ctx context.Context) (T, error) {
		o.Do(func() { v, err = f(ctx) })
		return v, err
	}
}

func output(s stage.Stage, name string) (stage.Output, bool) {
	for _, o := range s.Outputs() {
		if o.Name == name {
			return o, true
		}
	}
	return stage.Output{}, false
}

// passThrough says why a stage has nothing to do, or "".
func passThrough(s stage.Stage) string {
	if p, ok := s.(stage.PassThrough); ok {
		return p.PassThrough()
	}
	return ""
}

// Build makes the results of the target stages and of whatever they need, and
// returns what became of every stage that was looked at, in the given order.
// The first error cancels what else runs; results that were done stay. Where ctx
// has ended the error is that, unless a failure stands: see fault.Standing.
func (e *Engine) Build(ctx context.Context, stages []stage.Stage, targets ...string) ([]Built, error) {
	b, err := e.newBuild(stages)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	b.cancel = cancel
	g, gctx := errgroup.WithContext(running)
	for _, t := range targets {
		n := b.nodes[t]
		if n == nil {
			return nil, fmt.Errorf("no stage %s", t)
		}
		g.Go(func() error { _, err := n.ensure(gctx); return err })
	}
	if err := g.Wait(); err != nil {
		if fault.Stands(b.failure) {
			return nil, b.failure
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if b.failure != nil {
			return nil, b.failure
		}
		return nil, err
	}
	return b.summary(ctx)
}

// summary lists every stage with its key. A stage whose result no target
// needed to look at (its successors were hits) counts as a hit of theirs.
func (b *build) summary(ctx context.Context) ([]Built, error) {
	var out []Built
	for _, s := range b.order {
		n := b.nodes[s.Name()]
		if why := passThrough(s); why != "" {
			out = append(out, Built{Stage: s, PassThrough: why})
			continue
		}
		k, err := n.key(ctx)
		if err != nil {
			return nil, err
		}
		r, ok, err := b.Store.Lookup(k.key)
		if err != nil {
			return nil, err
		}
		if ok {
			b.Store.Touch(k.key) // what lies under a hit is used too
		}
		hit := !ok || r.Run != b.RunID // not there: it was pruned, and nothing needed it
		out = append(out, Built{Stage: s, Key: k.key, Hit: hit, Result: r})
	}
	return out, nil
}

// ensure makes sure that a stage's result is in the store.
func (b *build) ensure(ctx context.Context, n *node) (Built, error) {
	if why := passThrough(n.Stage); why != "" {
		if err := b.ensureInputs(ctx, n); err != nil {
			return Built{}, err
		}
		return Built{Stage: n.Stage, PassThrough: why}, nil
	}
	// A key that needs content that is yet to be made: the disks are wanted
	// too, most likely, so everything starts at once (a compile runs beside
	// the VM layers).
	known, err := b.keyKnown(ctx, n)
	if err != nil {
		return Built{}, err
	}
	if !known {
		if err := b.ensureInputs(ctx, n); err != nil {
			return Built{}, err
		}
	}
	k, err := n.key(ctx)
	if err != nil {
		return Built{}, err
	}
	if r, err := b.hit(ctx, n, k.key); r != nil || err != nil {
		return Built{Stage: n.Stage, Key: k.key, Hit: true, Result: r}, err
	}
	if err := b.ensureInputs(ctx, n); err != nil {
		return Built{}, err
	}
	r, hit, err := b.make(ctx, n, k)
	return Built{Stage: n.Stage, Key: k.key, Hit: hit, Result: r}, err
}

// hit returns a stored result that may be reused, and reports it. The result
// is held, so that no pruning takes it away while this build uses it.
func (b *build) hit(ctx context.Context, n *node, key string) (*cas.Result, error) {
	if v, ok := n.Stage.(stage.Volatile); ok && v.Volatile() != "" {
		return nil, nil
	}
	if _, ok, err := b.Store.Lookup(key); err != nil || !ok {
		return nil, err
	}
	if err := b.Store.Hold(ctx, key); err != nil {
		return nil, err
	}
	r, ok, err := b.Store.Lookup(key) // again: it may have been pruned just before
	if err != nil || !ok {
		return nil, err
	}
	b.Sink.Emit(report.Event{Kind: report.StageHit, Stage: n.Name(), Message: n.Title()})
	return r, nil
}

func (b *build) ensureInputs(ctx context.Context, n *node) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, in := range n.Inputs() {
		if in.From == "" { // a blob of the store, maybe
			g.Go(func() error { return b.Store.HoldBlob(gctx, in.Digest) })
			continue
		}
		p := b.nodes[in.From]
		g.Go(func() error { _, err := p.ensure(gctx); return err })
	}
	return g.Wait()
}

// key works out a stage's key; it makes the results whose content is in it.
func (b *build) key(ctx context.Context, n *node) (keyed, error) {
	d := keyDoc{Schema: keySchema, Stage: n.Name(), Fingerprint: n.Fingerprint(), Inputs: map[string]string{}}
	var unknown error // in a plan: an input whose content is yet to be made
	for _, in := range n.Inputs() {
		v := in.Digest
		switch {
		case in.From != "":
			var err error
			v, err = b.value(ctx, in.From, in.Output)
			switch {
			case errors.Is(err, errUnknown):
				unknown, v = err, unknownInput+in.From
			case err != nil:
				return keyed{}, err
			}
		case v == "" && b.dryRun: // it is yet to be downloaded
			unknown, v = fmt.Errorf("%s: %w", in.Name, errUnknown), unknownInput
		}
		d.Inputs[in.Name] = v
	}
	key, doc, err := makeKey(d)
	if err == nil && unknown != nil {
		return keyed{doc: doc}, unknown
	}
	return keyed{key, doc}, err
}

// value is what an output feeds into the keys of the stages that use it.
func (b *build) value(ctx context.Context, from, name string) (string, error) {
	p := b.nodes[from]
	if passThrough(p.Stage) != "" {
		in := inputNamed(p.Stage, name)
		return b.value(ctx, in.From, in.Output)
	}
	o, _ := output(p.Stage, name)
	if !o.Deterministic {
		k, err := p.key(ctx)
		return "key:" + k.key, err
	}
	if b.dryRun {
		k, err := p.key(ctx)
		if err != nil {
			return "", err
		}
		r, ok, err := b.Store.Lookup(k.key)
		if err != nil || !ok {
			return "", fmt.Errorf("%s: %w", from, errUnknown)
		}
		return r.Outputs[name].Digest, nil
	}
	built, err := p.ensure(ctx)
	if err != nil {
		return "", err
	}
	return built.Result.Outputs[name].Digest, nil
}

func inputNamed(s stage.Stage, name string) stage.Input {
	for _, in := range s.Inputs() {
		if in.Name == name {
			return in
		}
	}
	return stage.Input{}
}

// keyKnown says whether a stage's key can be had without running anything.
func (b *build) keyKnown(ctx context.Context, n *node) (bool, error) {
	for _, in := range n.Inputs() {
		if in.From == "" {
			continue
		}
		p := b.nodes[in.From]
		if known, err := b.keyKnown(ctx, p); err != nil || !known {
			return false, err
		}
		o, _ := output(p.Stage, in.Output)
		if !o.Deterministic || passThrough(p.Stage) != "" {
			continue
		}
		k, err := p.key(ctx)
		if err != nil {
			return false, err
		}
		if _, ok, err := b.Store.Lookup(k.key); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// now is the clock of results; they carry wall-clock times for people only.
func now() time.Time { return time.Now().UTC() }
