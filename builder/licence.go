package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/windows"
)

// licenceState is what is known of the licence before a build.
type licenceState struct {
	generation int             // see windows.Config
	record     *licence.Record // of the Windows that a build starts from; nil: it is yet to be installed
	aged       string          // why the one installed before is too old, or ""
	activate   bool            // a new one is to be activated
	notTried   string          // why not
}

// installed is one installation of the Windows that a build wants.
type installed struct {
	generation int
	usable     bool // it is in the store, undamaged
	record     *licence.Record
	aged       string
}

// resolveLicence finds the newest installation in the store that may still be
// built on, or the number for the next one. Which one a build uses depends on
// the store and on the day: it is local, and no lock holds it.
func (b *Builder) resolveLicence(ctx context.Context, r *Resolved, offline bool) error {
	r.licenceClock = licenceState{}
	if r.pending != nil {
		return nil
	}
	l := &r.licenceClock
	switch {
	case !r.Edition.Evaluation():
	case r.Spec.Activate == spec.ActivateNever:
		l.notTried = "--activate never"
	case offline:
		l.notTried = "--offline"
	default:
		l.activate = true
	}
	first := 0
	if r.Edition.Evaluation() {
		first = 1
	}
	l.generation = first
	found, err := b.installations(ctx, r)
	if err != nil {
		return err
	}
	for _, i := range found { // the newest first
		if i.usable && i.aged == "" {
			l.generation, l.record, l.aged = i.generation, i.record, ""
			return nil
		}
		if i.usable && l.aged == "" { // disks of other results may lie on it: it stays as it is
			l.generation, l.aged = max(first, i.generation+1), i.aged
		}
	}
	return nil
}

// installations lists the installations of the Windows that r wants, the newest
// first. They differ in their generation alone.
func (b *Builder) installations(ctx context.Context, r *Resolved) ([]installed, error) {
	docs, err := b.store.Docs(windows.Name)
	if err != nil {
		return nil, err
	}
	var generations []int
	for _, doc := range docs {
		var d struct {
			Fingerprint struct {
				Params struct {
					Generation int `json:"generation"`
				} `json:"params"`
			} `json:"fingerprint"`
		}
		if json.Unmarshal(doc, &d) == nil {
			generations = append(generations, d.Fingerprint.Params.Generation)
		}
	}
	slices.Sort(generations)
	slices.Reverse(generations)
	var out []installed
	for _, g := range slices.Compact(generations) {
		cfg := r.windowsConfig()
		cfg.Generation = g
		planned, err := (&engine.Engine{Store: b.store, Sink: report.Discard}).Plan(ctx, []stage.Stage{windows.New(cfg, bake.Host{})})
		if err != nil {
			return nil, err
		}
		if key := planned[0].Key; docs[key] != nil {
			out = append(out, b.installation(r, g, key, planned[0].Status == engine.Hit))
		}
	}
	return out, nil
}

func (b *Builder) installation(r *Resolved, generation int, key string, usable bool) installed {
	i := installed{generation: generation, usable: usable}
	if !usable {
		return i
	}
	record, err := readLicence(b.store, key)
	if err != nil {
		i.aged = err.Error() // how old it is can't be said
		return i
	}
	i.record = &record
	if why := record.TooOld(b.now(), r.Spec.LicenceDays); why != "" {
		i.aged = fmt.Sprintf("the evaluation installed %s is too old: %s", licence.Date(record.Installed), why)
	}
	return i
}

// readLicence reads the record that lies beside a Windows in the store.
func readLicence(s *cas.Store, key string) (licence.Record, error) {
	data, err := os.ReadFile(filepath.Join(s.Dir(key), windows.LicenceOutput))
	if err != nil {
		return licence.Record{}, fmt.Errorf("reading the licence's record: %w", err)
	}
	return licence.Parse(data)
}

// Clock returns the licence of the Windows that a build starts from, nil where
// that is yet to be installed.
func (r *Resolved) Clock() *licence.Record { return r.licenceClock.record }

// Aged says why Windows is installed anew although it was before, or "".
func (r *Resolved) Aged() string { return r.licenceClock.aged }

// LicenceText says on one line what the licence's clock is, or will be. It is
// empty where the medium is not known yet.
func (r *Resolved) LicenceText() string {
	l, text := r.licenceClock, ""
	switch {
	case r.pending != nil:
		return ""
	case l.record != nil:
		text = clockText(*l.record)
	case !r.Edition.Evaluation():
		text = licence.Record{}.String()
	case l.activate:
		text = "evaluation, to be installed: activating it will be tried; without that it ends after " + fmt.Sprint(licence.GraceDays) + " days"
	default:
		text = fmt.Sprintf("evaluation, to be installed and not activated (%s): it ends after %d days", l.notTried, licence.GraceDays)
	}
	return playedText(text, r)
}

func playedText(text string, r *Resolved) string {
	if r.Media.StandIn != nil {
		text += " (played by the stand-in)"
	}
	return text
}

// clockText is a licence's clock and, where it was not activated, why.
func clockText(l licence.Record) string {
	text := l.String()
	if l.Evaluation && !l.Activated && l.Activation != "" {
		text += "; " + l.Activation
	}
	return text
}
