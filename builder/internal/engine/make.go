package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// progressInterval is how often a stage's counted progress is worth an event.
const progressInterval = 200 * time.Millisecond

// make runs a stage and commits its result, unless another process has done
// so by the time its lock is had.
func (b *build) make(ctx context.Context, n *node, k keyed) (_ *cas.Result, hit bool, err error) {
	if needs(n.Stage).VM {
		if err := b.vm.Acquire(ctx, 1); err != nil {
			return nil, false, err
		}
		defer b.vm.Release(1)
	}
	lock, err := b.Store.Lock(ctx, k.key, func() {
		b.Sink.Emit(report.Event{Kind: report.Note, Stage: n.Name(),
			Message: "waiting for another build that makes the same"})
	})
	if err != nil {
		return nil, false, err
	}
	defer lock.Unlock()
	if r, err := b.hit(ctx, n, k.key); r != nil || err != nil {
		return r, true, err
	}
	started := now()
	b.Sink.Emit(report.Event{Kind: report.StageStarted, Stage: n.Name(), Message: n.Title(), Expected: b.Expected[n.Name()]})
	r, err := b.runStage(ctx, n, k)
	if err == nil {
		err = b.Store.Hold(ctx, k.key) // before the lock is let go: nobody prunes it meanwhile
	}
	elapsed := now().Sub(started)
	if err != nil {
		err = fmt.Errorf("%s: %w", n.Title(), err)
		kind := report.StageFailed
		if errors.Is(ctx.Err(), context.Canceled) && !fault.Stands(err) {
			kind = report.StageStopped
		} else {
			b.fail(err)
		}
		b.Sink.Emit(report.Event{Kind: kind, Stage: n.Name(), Message: err.Error(), Elapsed: elapsed})
		return nil, false, err
	}
	b.Sink.Emit(report.Event{Kind: report.StageDone, Stage: n.Name(), Message: n.Title(), Elapsed: elapsed})
	return r, false, nil
}

func needs(s stage.Stage) stage.Resources {
	if r, ok := s.(stage.Needer); ok {
		return r.Needs()
	}
	return stage.Resources{}
}

func (b *build) runStage(ctx context.Context, n *node, k keyed) (_ *cas.Result, err error) {
	draft, err := b.Store.Begin(k.key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, draft.Discard()) }()
	in, parents, err := b.inputPaths(ctx, n)
	if err != nil {
		return nil, err
	}
	if err := b.verifyInputs(ctx, n); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, o := range n.Outputs() {
		out[o.Name] = filepath.Join(draft.Dir, o.Name)
	}
	scratch, err := os.MkdirTemp(draft.Dir, ".scratch-")
	if err != nil {
		return nil, err
	}
	runDir := filepath.Join(b.Run, n.Name())
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return nil, err
	}
	w := stage.NewWork(in, out, scratch, runDir, report.ForStage(report.Thin(b.Sink, progressInterval), n.Name()))
	started := now()
	if err := n.Stage.Run(ctx, w); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(scratch); err != nil {
		return nil, err
	}
	r := cas.Result{Stage: n.Name(), Parents: parents, Started: started, Elapsed: now().Sub(started), Run: b.RunID}
	if r.Outputs, err = sealOutputs(ctx, n.Stage, out); err != nil {
		return nil, err
	}
	if r.Facts, err = marshalFacts(w.Facts()); err != nil {
		return nil, err
	}
	if err := draft.Commit(k.doc, r); err != nil {
		return nil, err
	}
	done, ok, err := b.Store.Lookup(k.key)
	if err == nil && !ok {
		err = errors.New("the result is not in the store after it was put there")
	}
	return done, err
}

// inputPaths returns where each input lies, and the keys of the disks among
// them: an overlay is nothing without its parents.
func (b *build) inputPaths(ctx context.Context, n *node) (paths map[string]string, parents []string, err error) {
	paths = map[string]string{}
	for _, in := range n.Inputs() {
		if in.From == "" {
			paths[in.Name] = in.Path
			continue
		}
		p, name := b.nodes[in.From], in.Output
		for passThrough(p.Stage) != "" {
			up := inputNamed(p.Stage, name)
			p, name = b.nodes[up.From], up.Output
		}
		k, err := p.key(ctx)
		if err != nil {
			return nil, nil, err
		}
		paths[in.Name] = filepath.Join(b.Store.Dir(k.key), name)
		if o, _ := output(p.Stage, name); o.Kind == stage.Disk && makesDisk(n.Stage) {
			parents = append(parents, k.key)
		}
	}
	return paths, parents, nil
}

// verifyInputs rehashes the inputs whose digest is in the stage's key, each
// once a build: what has changed meanwhile must not get into a box. Disks are
// many gigabytes, and left to wbox cache verify.
func (b *build) verifyInputs(ctx context.Context, n *node) error {
	for _, in := range n.Inputs() {
		if in.From == "" {
			continue
		}
		p, name := b.nodes[in.From], in.Output
		if o, _ := output(p.Stage, name); !o.Deterministic || passThrough(p.Stage) != "" {
			continue
		}
		k, err := p.key(ctx)
		if err != nil {
			return err
		}
		if err := b.verified.once(k.key+" "+name, func() error { return b.Store.VerifyOutput(ctx, k.key, name) }); err != nil {
			return err
		}
	}
	return nil
}

// memo remembers what was found in order.
type memo struct {
	mu   sync.Mutex
	good map[string]bool
}

func (m *memo) once(what string, check func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.good[what] {
		return nil
	}
	err := check()
	if err == nil {
		if m.good == nil {
			m.good = map[string]bool{}
		}
		m.good[what] = true
	}
	return err
}

func makesDisk(s stage.Stage) bool {
	for _, o := range s.Outputs() {
		if o.Kind == stage.Disk {
			return true
		}
	}
	return false
}

// sealOutputs checks that each output is there and what it should be, makes
// it read-only and describes it.
func sealOutputs(ctx context.Context, s stage.Stage, paths map[string]string) (map[string]cas.OutputResult, error) {
	out := map[string]cas.OutputResult{}
	for _, o := range s.Outputs() {
		p := paths[o.Name]
		fi, err := os.Lstat(p)
		if err != nil {
			return nil, fmt.Errorf("output %s was not made: %w", o.Name, err)
		}
		if fi.IsDir() != (o.Kind == stage.Tree) || (!fi.IsDir() && !fi.Mode().IsRegular()) {
			return nil, fmt.Errorf("output %s is not a %s", o.Name, o.Kind)
		}
		r := cas.OutputResult{Kind: string(o.Kind), Size: fi.Size()}
		switch {
		case o.Kind == stage.Tree:
			r.Digest, r.Size, err = cas.DigestTree(ctx, p)
		case o.Kind != stage.Secret: // also where no key needs it: verification does
			r.Digest, r.Size, err = cas.DigestFile(ctx, p)
		}
		if err != nil {
			return nil, err
		}
		if err := seal(p, o.Kind); err != nil {
			return nil, fmt.Errorf("sealing output %s: %w", o.Name, err)
		}
		out[o.Name] = r
	}
	return out, nil
}

// seal takes the right to write from an output; a secret is its owner's alone.
func seal(path string, kind stage.Kind) error {
	switch kind {
	case stage.Secret:
		return os.Chmod(path, 0o600)
	case stage.Tree:
		return nil
	}
	return os.Chmod(path, 0o444)
}

func marshalFacts(facts map[string]any) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for name, v := range facts {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("recording %s: %w", name, err)
		}
		out[name] = b
	}
	return out, nil
}
