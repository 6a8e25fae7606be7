// Package proof is the stage that boots the finished box: an overlay of its
// disk, entered as a user would enter it. It tests again what every layer set,
// that the payload has arrived in C:\k, and that nothing of the bake is left. It
// must not import another stage.
package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id, Output its only output: a JSON Report.
const (
	Name   = "proof"
	Output = "proof.json"
)

// Names of its inputs.
const (
	diskInput = "disk"
	bitsInput = "bits"
)

// Config says what to prove.
type Config struct {
	Scripts []bake.Script // of the layers, tested in this order
	Account guest.Access  // the box's own
	// Files describes the payload in a folder of binaries.
	Files func(ctx context.Context, dir string) ([]disk.PayloadFile, error)
}

// Report is what was proven.
type Report struct {
	Scripts []bake.Applied `json:"scripts"`
	Boots   int            `json:"boots"`
}

// Stage boots and tests.
type Stage struct {
	cfg        Config
	disk, bits stage.Input
	host       bake.Host
}

// New makes the stage: finished is the box's disk, bits the folder of .exe
// files that must be in it.
func New(cfg Config, finished, bits stage.Input, host bake.Host) *Stage {
	finished.Name, bits.Name = diskInput, bitsInput
	return &Stage{cfg, finished, bits, host}
}

// Name returns the stage's id.
func (s *Stage) Name() string { return Name }

// Title returns a phrase for people.
func (s *Stage) Title() string { return "proving the box" }

// Needs says that it runs a machine.
func (s *Stage) Needs() stage.Resources { return stage.Resources{VM: true} }

// Inputs lists the finished disk and the binaries.
func (s *Stage) Inputs() []stage.Input { return []stage.Input{s.disk, s.bits} }

// Outputs lists the report.
func (s *Stage) Outputs() []stage.Output { return []stage.Output{{Name: Output, Kind: stage.File}} }

// proveScript compares the payload.
const proveScript = "99-prove-payload"

// Fingerprint covers the scripts.
func (s *Stage) Fingerprint() stage.Fingerprint {
	params := map[string]any{}
	for _, sc := range s.cfg.Scripts {
		params[sc.Name] = sc.Params
	}
	return stage.Fingerprint{Version: 1, Params: params, Files: bake.ScriptDigests(s.scripts(nil))}
}

func (s *Stage) scripts(prove any) []bake.Script {
	return append(append([]bake.Script{}, s.cfg.Scripts...), bake.Script{Name: proveScript, Params: prove})
}

// proveParams are the parameters of 99-prove-payload.
type proveParams struct {
	Files []proveFile `json:"files"`
}

type proveFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Run proves the box; its disk is not written.
func (s *Stage) Run(ctx context.Context, w *stage.Work) (err error) {
	files, err := s.cfg.Files(ctx, w.In(bitsInput))
	if err != nil {
		return err
	}
	var p proveParams
	for _, f := range files {
		p.Files = append(p.Files, proveFile{f.Name, f.SHA256, f.Size})
	}
	list := s.scripts(p)
	seed := filepath.Join(w.Scratch, "seed.iso")
	if err := (bake.Seed{Scripts: list}).Write(ctx, seed); err != nil {
		return err
	}
	overlay := filepath.Join(w.Scratch, "proof.qcow2")
	if err := s.host.Disk.CreateOverlay(ctx, w.In(diskInput), overlay); err != nil {
		return err
	}
	r, err := s.host.Start(ctx, w, bake.Boot{Name: Name, Disk: overlay, Media: []string{seed}, Access: s.cfg.Account})
	if err != nil {
		return err
	}
	defer func() { err = r.End(ctx, err) }()
	applied, err := r.Prove(ctx, list)
	if err != nil {
		return err
	}
	if err := r.Stop(ctx); err != nil {
		return err
	}
	report := Report{Scripts: applied, Boots: r.Boots()}
	w.Fact("scripts", report.Scripts)
	w.Fact("boots", report.Boots)
	w.Fact("driver", strings.TrimSpace(s.host.Driver.Name()+" "+s.host.Version))
	w.Fact("accelerator", s.host.Accelerator)
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return os.WriteFile(w.Out(Output), append(b, '\n'), 0o644)
}
