package licence

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Encode returns a Record as JSON for its file.
func (r Record) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the licence's record: %w", err)
	}
	return append(b, '\n'), nil
}

// Parse reads what Encode wrote. A clock that lacks an end is an error.
func Parse(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("reading the licence's record: %w", err)
	}
	switch {
	case r.Installed.IsZero():
		return Record{}, errors.New("reading the licence's record: it does not say when Windows was installed")
	case r.Evaluation && r.EvaluationEnds.IsZero(), r.Evaluation && !r.Activated && r.GraceEnds.IsZero():
		return Record{}, errors.New("reading the licence's record: it is an evaluation without an end")
	}
	return r, nil
}

// FromFacts reads what the guest script 14-check-licence reports.
func FromFacts(facts map[string]any) (Guest, error) {
	raw, err := json.Marshal(facts)
	if err != nil {
		return Guest{}, fmt.Errorf("reading what the guest says of its licence: %w", err)
	}
	var f struct {
		Edition    *string    `json:"edition"`
		Evaluation *bool      `json:"evaluation"`
		Installed  *time.Time `json:"installed"`
		Now        *time.Time `json:"now"`
		Status     *int       `json:"licenseStatus"`
		Remaining  int        `json:"gracePeriodRemaining"`
		Ends       time.Time  `json:"evaluationEndDate"`
		Activation string     `json:"activation"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return Guest{}, fmt.Errorf("reading what the guest says of its licence: %w", err)
	}
	if f.Edition == nil || f.Evaluation == nil || f.Installed == nil || f.Now == nil || f.Status == nil {
		return Guest{}, errors.New("reading what the guest says of its licence: edition, evaluation, installed, now or licenseStatus is missing")
	}
	for _, t := range []time.Time{*f.Installed, *f.Now, f.Ends} {
		if y := t.UTC().Year(); y < 1 || y > 9999 { // its record could not be written
			return Guest{}, fmt.Errorf("reading what the guest says of its licence: the year %d", y)
		}
	}
	return Guest{Edition: *f.Edition, Evaluation: *f.Evaluation, Installed: *f.Installed, Now: *f.Now, Status: *f.Status,
		Remaining: max(0, f.Remaining), Ends: f.Ends, Activation: f.Activation}, nil
}
