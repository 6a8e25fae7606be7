package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/stages/preload"
	"github.com/wbox-dev/wbox/builder/stages/proof"
)

// Manifest describes a box: what went in, how long each step took, what was
// proven and on what.
type Manifest struct {
	Schema       int               `json:"schema"`
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Kubernetes   string            `json:"kubernetes"`
	StandIn      bool              `json:"standIn"`
	GuestScripts string            `json:"guestScripts"`
	Licence      string            `json:"licence"`
	LicenceClock licence.Record    `json:"licenceClock"`
	Inputs       map[string]string `json:"inputs"` // name -> digest
	Proof        ProofNote         `json:"proof"`
	Boots        int               `json:"boots"`   // of guests, in the runs that made the results
	Seconds      float64           `json:"seconds"` // sum of the steps
	Stages       []BuiltStage      `json:"stages"`
	Provider     string            `json:"provider"`
	SHA256       string            `json:"sha256"` // of the box
	Wbox         string            `json:"wbox"`   // version of wbox
	Time         time.Time         `json:"time"`
}

// ProofNote says on what the box was proven.
type ProofNote struct {
	Guest       string `json:"guest"`       // "stand-in" or the Windows edition
	Driver      string `json:"driver"`      // such as "qemu 7.2.22"
	Accelerator string `json:"accelerator"` // such as "tcg"
	Remark      string `json:"remark,omitempty"`
}

func writeManifest(ctx context.Context, path string, m Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	if err := atomicfile.Write(ctx, path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return nil
}

func (b *Built) manifest(p *Published) Manifest {
	r := b.Resolved
	m := Manifest{Schema: 1, Name: r.BoxName, Version: r.Version, Kubernetes: r.Ref.Version, StandIn: r.Media.StandIn != nil,
		GuestScripts: r.GuestScripts(), Licence: r.licence(), LicenceClock: b.clock, Inputs: map[string]string{"iso": r.ISODigest}, Stages: b.Stages, Provider: p.Provider, SHA256: p.SHA256,
		Wbox: buildVersion(), Time: time.Now().UTC(),
		Proof: ProofNote{Guest: r.Edition.Name}}
	b.fact(proof.Name, "driver", &m.Proof.Driver) // of the run that proved it
	b.fact(proof.Name, "accelerator", &m.Proof.Accelerator)
	if m.StandIn {
		m.Proof.Guest = "stand-in"
		m.Proof.Remark = "everything but Windows itself: the guest is a small Linux that plays it"
	}
	for name, digest := range r.Ref.Inputs {
		m.Inputs["kubernetes "+name] = digest
	}
	for _, i := range preload.Images(r.preload) {
		m.Inputs[imageInput(i.Name)] = i.Digest
	}
	for prefix, p := range map[string]programs{cniPrefix: r.cni, runtimePrefix: r.runtime} {
		for name, digest := range p.ref.Inputs {
			m.Inputs[prefix+" "+name] = digest
		}
	}
	for _, s := range b.Stages {
		m.Seconds += s.Seconds
		var boots int
		if raw, ok := s.Facts["boots"].(json.RawMessage); ok && json.Unmarshal(raw, &boots) == nil {
			m.Boots += boots
		}
	}
	return m
}

// fact reads what a stage recorded under a name into v, if it did.
func (b *Built) fact(stage, name string, v any) bool {
	for _, s := range b.Stages {
		if raw, ok := s.Facts[name].(json.RawMessage); ok && s.Stage == stage {
			return json.Unmarshal(raw, v) == nil
		}
	}
	return false
}

// Boots sums up how often guests were booted for the results of this build,
// in this run only if thisRun is set.
func (b *Built) Boots(thisRun bool) int {
	n := 0
	for _, s := range b.Stages {
		var boots int
		if raw, ok := s.Facts["boots"].(json.RawMessage); ok && (!thisRun || !s.Hit) && json.Unmarshal(raw, &boots) == nil {
			n += boots
		}
	}
	return n
}

// buildVersion is wbox's own version, as the Go toolchain recorded it.
func buildVersion() string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" {
		return bi.Main.Version
	}
	return "unknown"
}
