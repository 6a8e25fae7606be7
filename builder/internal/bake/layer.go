package bake

import (
	"context"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Names of the inputs and outputs that all VM stages share.
const (
	DiskOutput   = "disk"
	AccessOutput = "access"
)

// Layer is a stage that brings the states of some guest scripts about on an
// overlay of its parent's disk.
type Layer struct {
	ID      string // the stage's name
	Label   string // the stage's title
	Version int    // raised when what the layer makes changes for another reason than its scripts
	Parent  string // the stage whose disk it starts from
	Access  string // the stage that holds the bake's account and certificate
	Scripts []Script
	Folders []stage.Input // locked folders that go below payload/ of the seed, under the input's name
	Empty   string        // why there is nothing to do, or ""
	// Sealing layers end by a last script whose set mode makes the guest shut
	// itself down; what it did is proven by the proof, not here.
	Sealing bool
	Host    Host
}

// Name returns the stage's id.
func (l *Layer) Name() string { return l.ID }

// Title returns a phrase for people.
func (l *Layer) Title() string { return l.Label }

// PassThrough returns why there is nothing to do, or "".
func (l *Layer) PassThrough() string { return l.Empty }

// Needs says that a layer runs a machine.
func (l *Layer) Needs() stage.Resources { return stage.Resources{VM: true} }

// Inputs lists the parent's disk, the way in, and the payload.
func (l *Layer) Inputs() []stage.Input {
	in := []stage.Input{stage.FromStage(DiskOutput, l.Parent, DiskOutput), stage.FromStage(AccessOutput, l.Access, AccessOutput)}
	return append(in, l.Folders...)
}

// Outputs lists the layer's disk.
func (l *Layer) Outputs() []stage.Output {
	return []stage.Output{{Name: DiskOutput, Kind: stage.Disk}}
}

// Fingerprint covers the scripts and their parameters.
func (l *Layer) Fingerprint() stage.Fingerprint {
	params := map[string]any{}
	for _, s := range l.Scripts {
		params[s.Name] = s.Params
	}
	return stage.Fingerprint{Version: l.Version, Params: params, Files: ScriptDigests(l.Scripts)}
}

// Run bakes the layer.
func (l *Layer) Run(ctx context.Context, w *stage.Work) (err error) {
	access, err := guest.LoadAccess(w.In(AccessOutput))
	if err != nil {
		return err
	}
	if err := l.Host.Disk.CreateOverlay(ctx, w.In(DiskOutput), w.Out(DiskOutput)); err != nil {
		return err
	}
	seed := Seed{Scripts: l.Scripts, Folders: map[string]string{}}
	for _, f := range l.Folders {
		seed.Folders[f.Name] = w.In(f.Name)
	}
	seedPath := filepath.Join(w.Scratch, "seed.iso")
	if err := seed.Write(ctx, seedPath); err != nil {
		return err
	}
	defer os.Remove(seedPath)
	r, err := l.Host.Start(ctx, w, Boot{Name: l.ID, Disk: w.Out(DiskOutput), Media: []string{seedPath}, Access: access, TLS: true})
	if err != nil {
		return err
	}
	defer func() { err = r.End(ctx, err) }()
	return l.bake(ctx, w, r)
}

func (l *Layer) bake(ctx context.Context, w *stage.Work, r *Running) error {
	scripts := l.Scripts
	if l.Sealing {
		scripts = scripts[:len(scripts)-1]
	}
	applied, err := r.Apply(ctx, scripts)
	if err != nil {
		return err
	}
	w.Fact("scripts", applied)
	if l.Sealing {
		if err := r.Set(ctx, l.Scripts[len(l.Scripts)-1]); err != nil {
			return err
		}
		w.Progress("waiting until the guest has sealed itself and turned off")
		err = r.WaitOff(ctx)
	} else {
		err = r.Stop(ctx)
	}
	if err != nil {
		return err
	}
	w.Fact("boots", r.Boots())
	return nil
}
