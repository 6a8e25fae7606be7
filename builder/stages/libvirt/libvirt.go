// Package libvirt is the stage that makes a Vagrant box for libvirt of the
// finished disk. It must not import another stage.
package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Name is the stage's id, Output its only output: the .box file.
const (
	Name   = "libvirt"
	Output = "libvirt.box"
)

// Names of its inputs.
const (
	diskInput    = "disk"
	licenceInput = "licence"
)

// Config says what the box tells about itself.
type Config struct {
	CPUs, MemoryMiB int               // defaults of a machine made from the box
	Info            map[string]string // shown by "vagrant box list -i"
}

// Stage makes the box.
type Stage struct {
	cfg      Config
	finished stage.Input
	licence  stage.Input
	disk     *disk.Tool
}

// New makes the stage of the finished disk and of the record of its licence,
// whose clock the box shows.
func New(cfg Config, finished, licence stage.Input, tool *disk.Tool) *Stage {
	finished.Name, licence.Name = diskInput, licenceInput
	return &Stage{cfg, finished, licence, tool}
}

// Name returns the stage's id.
func (s *Stage) Name() string { return Name }

// Title returns a phrase for people.
func (s *Stage) Title() string { return "packing the libvirt box" }

// Inputs lists the finished disk and the licence's record.
func (s *Stage) Inputs() []stage.Input { return []stage.Input{s.finished, s.licence} }

// Outputs lists the box.
func (s *Stage) Outputs() []stage.Output {
	return []stage.Output{{Name: Output, Kind: stage.File, Deterministic: true}}
}

// Fingerprint covers the Vagrantfile's template and what the box tells.
func (s *Stage) Fingerprint() stage.Fingerprint {
	vagrantfile, err := s.vagrantfile()
	if err != nil {
		vagrantfile = []byte(err.Error()) // Run reports it; a key that no result has is right here
	}
	sum := sha256.Sum256(vagrantfile)
	return stage.Fingerprint{Version: 1, Params: s.cfg, Files: map[string]string{"Vagrantfile": "sha256:" + hex.EncodeToString(sum[:])}}
}

func (s *Stage) vagrantfile() ([]byte, error) {
	return box.LibvirtVagrantfile(box.Hardware{CPUs: s.cfg.CPUs, MemoryMiB: s.cfg.MemoryMiB})
}

// Run flattens the disk's chain of overlays and packs it.
func (s *Stage) Run(ctx context.Context, w *stage.Work) error {
	w.Progress("flattening the disk")
	flat := filepath.Join(w.Scratch, "box.img")
	if err := s.disk.Flatten(ctx, w.In(diskInput), flat, disk.FlattenOptions{}); err != nil {
		return err
	}
	info, err := s.disk.Info(ctx, flat)
	if err != nil {
		return err
	}
	vagrantfile, err := s.vagrantfile()
	if err != nil {
		return err
	}
	packed := func(done, total int64) {
		w.Sink.Emit(report.Event{Kind: report.StageProgress, Message: "packing", Done: done, Total: total})
	}
	shown, err := s.info(w.In(licenceInput))
	if err != nil {
		return err
	}
	b := box.Box{Disk: flat, VirtualSize: info.VirtualSize, Vagrantfile: vagrantfile, Info: shown}
	if err := box.WriteLibvirt(ctx, b, w.Out(Output), packed); err != nil {
		return err
	}
	w.Progress("reading the box back")
	_, err = box.Check(ctx, w.Out(Output))
	return err
}

// info is what the box tells about itself, its licence's clock included.
func (s *Stage) info(record string) (map[string]string, error) {
	data, err := os.ReadFile(record)
	if err != nil {
		return nil, fmt.Errorf("reading the licence's record: %w", err)
	}
	l, err := licence.Parse(data)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(s.cfg.Info)
	out["licence-clock"] = l.String()
	return out, nil
}
