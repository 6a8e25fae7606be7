// Package windows is the first layer: it installs Windows from its ISO,
// unattended, onto an empty disk, and makes the account and the certificate
// that let the later layers in. It must not import another stage.
package windows

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/answerfile"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id.
const Name = "windows"

// Config says what to install.
type Config struct {
	Release   string // 2019, 2022 or 2025
	ImageName string // the image's NAME in install.wim
	ISO       string // where the medium lies; not in the key
	ISODigest string // "sha256:…" of the medium
	DiskGiB   int    // size of the system disk
	// Generation numbers the installations of one store that are alike but for
	// their age: an evaluation that got too old is not replaced, since disks of
	// other results lie on it, but followed by the next one. 0: of no evaluation.
	Generation int
	Activate   bool   // try to activate an evaluation; not in the key
	Why        string // why that is not tried, for people; not in the key
}

// Stage installs Windows.
type Stage struct {
	cfg  Config
	host bake.Host
}

// New makes the stage.
func New(cfg Config, host bake.Host) *Stage { return &Stage{cfg, host} }

// Name returns the stage's id.
func (s *Stage) Name() string { return Name }

// Title returns a phrase for people.
func (s *Stage) Title() string { return "installing Windows Server " + s.cfg.Release }

// Needs says that it runs a machine.
func (s *Stage) Needs() stage.Resources { return stage.Resources{VM: true} }

// Inputs lists the medium.
func (s *Stage) Inputs() []stage.Input {
	return []stage.Input{stage.Locked("iso", s.cfg.ISODigest, s.cfg.ISO)}
}

// LicenceOutput is the record of the licence's clock, a licence.Record.
const LicenceOutput = "licence.json"

// Outputs lists the disk, the way in, which is a secret, and the licence.
func (s *Stage) Outputs() []stage.Output {
	return []stage.Output{{Name: bake.DiskOutput, Kind: stage.Disk}, {Name: bake.AccessOutput, Kind: stage.Secret},
		{Name: LicenceOutput, Kind: stage.File, Deterministic: true}}
}

// params are what decides the result beside the medium and the scripts. The
// account's password and the certificate are made anew each time and are no
// part of it.
type params struct {
	Release   string `json:"release"`
	ImageName string `json:"imageName"`
	DiskGiB   int    `json:"diskGiB"`
	Answer    string `json:"answerFile"` // digest of the answer file's template
	Account   string `json:"account"`
	// Generation is Config's.
	Generation int `json:"generation,omitempty"`
}

// Fingerprint covers the answer file's template, the image and the scripts.
func (s *Stage) Fingerprint() stage.Fingerprint {
	answer, err := answerfile.Digest(s.cfg.Release)
	if err != nil {
		answer = err.Error() // Run reports it; a key that no result has is right here
	}
	return stage.Fingerprint{Version: 1, Files: bake.ScriptDigests(scripts(nil, nil)),
		Params: params{s.cfg.Release, s.cfg.ImageName, s.cfg.DiskGiB, answer, guest.BakeAccount, s.cfg.Generation}}
}

// enableParams are the parameters of 10-enable-winrm.
type enableParams struct {
	PFX      string `json:"pfx"` // file below payload\
	Password string `json:"pfxPassword"`
	Account  string `json:"account"`
	Port     int    `json:"port"`
}

// pfxFile is the certificate's file below payload\ on the seed.
const pfxFile = "winrm.pfx"

func scripts(enable, licence any) []bake.Script {
	list := append([]bake.Script{{Name: "10-enable-winrm", Params: enable}}, Prepare()...)
	return append(list, bake.Script{Name: licenceScript, Params: licence})
}

// Prepare returns the scripts that the proof tests again.
func Prepare() []bake.Script {
	return []bake.Script{{Name: "12-prepare-system", Params: struct{}{}}}
}

// Run installs Windows.
func (s *Stage) Run(ctx context.Context, w *stage.Work) (err error) {
	if err := s.checkMedium(ctx, w); err != nil {
		return err
	}
	began := s.host.Now()
	access, err := guest.NewAccess(rand.Reader, began)
	if err != nil {
		return fmt.Errorf("making the bake's account: %w", err)
	}
	answer, err := answerfile.Render(answerfile.Params{Release: s.cfg.Release, ImageName: s.cfg.ImageName,
		Account: access.User, Password: access.Password})
	if err != nil {
		return err
	}
	list := scripts(enableParams{pfxFile, access.PFXPassword, access.User, 5986}, licenceParams{s.cfg.Activate})
	seed := bake.Seed{Scripts: list, Answer: answer, Payload: map[string][]byte{pfxFile: access.PFX}}
	seedPath := filepath.Join(w.Scratch, "seed.iso")
	if err := seed.Write(ctx, seedPath); err != nil {
		return err
	}
	if err := s.host.Disk.Create(ctx, w.Out(bake.DiskOutput), int64(s.cfg.DiskGiB)<<30); err != nil {
		return err
	}
	r, err := s.host.Start(ctx, w, bake.Boot{Name: Name, Disk: w.Out(bake.DiskOutput), Media: []string{w.In("iso"), seedPath},
		BootMedia: true, PressEnter: true, Access: access, TLS: true, FirstWait: bake.InstallDeadline})
	if err != nil {
		return err
	}
	defer func() { err = r.End(ctx, err) }()
	applied, err := r.Apply(ctx, list)
	if err != nil {
		return err
	}
	w.Fact("scripts", applied)
	if err := s.record(w, began, applied); err != nil {
		return err
	}
	if err := r.Stop(ctx); err != nil {
		return err
	}
	w.Fact("boots", r.Boots()+1) // Setup reboots once by itself
	return guest.SaveAccess(ctx, w.Out(bake.AccessOutput), access)
}

// checkMedium hashes the medium, which takes seconds of the half hour that
// follows: its digest may have been remembered, and a damaged file keeps its
// size and times.
func (s *Stage) checkMedium(ctx context.Context, w *stage.Work) error {
	w.Progress("checking the medium")
	got, _, err := cas.DigestFile(ctx, w.In("iso"))
	if err != nil {
		return err
	}
	if got != s.cfg.ISODigest {
		return &fault.Problem{Class: fault.Input, Field: "--iso", Value: w.In("iso"), Why: "has changed: its content has the digest " + got + ", not " + s.cfg.ISODigest,
			Fix: "run wbox cache verify and wbox cache prune, which forget it, and get the medium anew if it was damaged"}
	}
	return nil
}
