package builder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

// Options are what a Builder works with. Nothing of it changes what comes out.
type Options struct {
	Store  string            // Required: the folder of results, made where it does not exist
	Driver hypervisor.Driver // Required: what runs the machines
	Dial   Dialer            // Required: how to talk to a guest
	Sink   report.Sink       // Optional: receives events; default: they are dropped
	// KeepOnFailure keeps a machine whose guest failed until Build's context
	// ends; the error is then still the failure. See report.MachineKept.
	KeepOnFailure bool
	// Optional: measures disk and memory; default: this host's.
	Capacity Capacity
	// Optional: between two looks at a guest that is waited for; default: 2 s.
	Poll time.Duration
	// Optional: a clock for rehearsals of what happens to a licence in time; the
	// guest of a stand-in gets it too, Windows never does. Default: this host's.
	Clock func() time.Time
}

// Dialer opens a connection to a guest's WinRM port; see bake.Host.
type Dialer = bake.Dialer

// Builder bakes boxes. It is safe for concurrent use.
type Builder struct {
	opts  Options
	store *cas.Store
}

// New opens the store and returns a Builder over it.
func New(opts Options) (*Builder, error) {
	store, err := cas.Open(opts.Store)
	if err != nil {
		return nil, err
	}
	if opts.Sink == nil {
		opts.Sink = report.Discard
	}
	if opts.Poll == 0 {
		opts.Poll = 2 * time.Second
	}
	return &Builder{opts: opts, store: store}, nil
}

// now is the day by which licences are judged.
func (b *Builder) now() time.Time {
	if b.opts.Clock != nil {
		return b.opts.Clock()
	}
	return time.Now()
}

// PlanLine is one stage of a plan.
type PlanLine struct {
	Stage  string `json:"stage"`
	Title  string `json:"title"`
	Status string `json:"status"` // hit, miss, empty or always
	Key    string `json:"key,omitempty"`
	Why    string `json:"why,omitempty"`
	Aged   bool   `json:"aged,omitempty"` // a miss, since the evaluation installed before is too old: see Why
	// Explain is set by Builder.Explain.
	Explain *StageExplained `json:"explain,omitempty"`
}

// Plan says what Build would do, stage by stage, and changes nothing.
func (b *Builder) Plan(ctx context.Context, r *Resolved) ([]PlanLine, error) {
	e := &engine.Engine{Store: b.store, Sink: b.opts.Sink}
	planned, err := e.Plan(ctx, pipeline(r, bake.Host{}))
	if err != nil {
		return nil, err
	}
	return r.planLines(planned), nil
}

func (r *Resolved) planLines(planned []engine.Planned) []PlanLine {
	out := make([]PlanLine, len(planned))
	for i, p := range planned {
		out[i] = PlanLine{Stage: p.Stage.Name(), Title: p.Stage.Title(), Status: string(p.Status), Key: p.Key, Why: p.Why}
		if r.agedOut(p) {
			out[i].Why, out[i].Aged = r.Aged(), true
		}
	}
	return out
}

// agedOut says whether a stage would run since an earlier result is too old.
func (r *Resolved) agedOut(p engine.Planned) bool {
	return r.Aged() != "" && p.Stage.Name() == windows.Name && p.Status == engine.Miss
}

// Built is a finished build: every result is in the store, nothing is
// published yet.
type Built struct {
	Resolved *Resolved
	RunID    string
	RunDir   string // events, transcripts, serial logs
	Stages   []BuiltStage
	boxPath  string
	clock    licence.Record // of the Windows inside
}

// Build makes what is missing. It must be given what Resolve returned. Where
// disk or memory are too short for it, it refuses before it starts: see
// Preflight. A disk that is full by then is a *fault.Problem of class
// fault.Host that names the folder.
func (b *Builder) Build(ctx context.Context, r *Resolved) (_ *Built, err error) {
	defer func() { err = b.full(err, r.Spec.Output) }()
	if err := b.store.Sweep(); err != nil {
		return nil, err
	}
	sweepTemp(os.TempDir(), time.Now())
	if err := b.store.HoldBlob(ctx, r.ISODigest); err != nil { // nobody prunes the medium meanwhile
		return nil, err
	}
	expected, err := b.preflight(ctx, r)
	if err != nil {
		return nil, err
	}
	id, dir, err := b.store.NewRun(time.Now())
	if err != nil {
		return nil, err
	}
	events, err := openEvents(dir)
	if err != nil {
		return nil, err
	}
	defer events.Close()
	e := &engine.Engine{Store: b.store, Sink: report.Tee(b.opts.Sink, events), RunID: id, Run: dir, Expected: expected}
	stages := pipeline(r, b.host(ctx, r))
	built, err := e.Build(ctx, stages, targets()...)
	if err != nil {
		return nil, err
	}
	return b.finish(r, id, dir, built)
}

// host says how machines are run for this build, which ends with ctx.
func (b *Builder) host(ctx context.Context, r *Resolved) bake.Host {
	var keep bake.Keeper
	if b.opts.KeepOnFailure {
		keep = func(off <-chan struct{}) {
			select {
			case <-ctx.Done():
			case <-off:
			}
		}
	}
	patience := 1
	if r.Features.Accelerator == hypervisor.Emulation {
		patience = 4
	}
	h := bake.Host{Driver: b.opts.Driver, Version: r.Features.Version, Accelerator: r.Features.Accelerator, CPUs: r.Spec.CPUs, MemoryMiB: r.memoryMiB,
		Patience: patience, Dial: b.opts.Dial, Disk: r.disk, Poll: b.opts.Poll, Keep: keep}
	if r.Media.StandIn != nil {
		h.Clock = b.opts.Clock
	}
	return h
}

// BuiltStage is what became of one stage.
type BuiltStage struct {
	Stage   string                      `json:"stage"`
	Title   string                      `json:"title"`
	Key     string                      `json:"key,omitempty"`
	Hit     bool                        `json:"hit"`             // it was in the store
	Empty   string                      `json:"empty,omitempty"` // why there was nothing to do
	Seconds float64                     `json:"seconds"`         // how long it took when it was made
	Run     string                      `json:"run,omitempty"`   // the run that made it
	Outputs map[string]cas.OutputResult `json:"outputs,omitempty"`
	Facts   map[string]any              `json:"facts,omitempty"`
}

func (b *Builder) finish(r *Resolved, id, dir string, built []engine.Built) (*Built, error) {
	out := &Built{Resolved: r, RunID: id, RunDir: dir}
	for _, s := range built {
		bs := BuiltStage{Stage: s.Stage.Name(), Title: s.Stage.Title(), Key: s.Key, Hit: s.Hit, Empty: s.PassThrough}
		if s.Result != nil {
			bs.Seconds, bs.Run, bs.Outputs = s.Result.Elapsed.Seconds(), s.Result.Run, s.Result.Outputs
			bs.Facts = map[string]any{}
			for k, v := range s.Result.Facts {
				bs.Facts[k] = v
			}
		}
		out.Stages = append(out.Stages, bs)
	}
	path, err := b.outputPath(built, libvirt.Name, libvirt.Output)
	if err != nil {
		return nil, err
	}
	out.boxPath = path
	for _, s := range built {
		if s.Stage.Name() == windows.Name {
			out.clock, err = readLicence(b.store, s.Key)
		}
	}
	return out, err
}

// LicenceText says on one line what the licence's clock is.
func (b *Built) LicenceText() string { return playedText(clockText(b.clock), b.Resolved) }

// UpToDate says whether the build had nothing to do.
func (b *Built) UpToDate() bool {
	for _, s := range b.Stages {
		if !s.Hit && s.Empty == "" {
			return false
		}
	}
	return true
}

func (b *Builder) outputPath(built []engine.Built, name, output string) (string, error) {
	for _, s := range built {
		if s.Stage.Name() == name && s.Result != nil {
			return filepath.Join(b.store.Dir(s.Key), output), nil
		}
	}
	return "", fmt.Errorf("stage %s left no result", name)
}
