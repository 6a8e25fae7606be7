package windows

import (
	"errors"
	"os"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// licenceScript says what licence Windows has, and activates an evaluation.
const licenceScript = "14-check-licence"

// licenceParams are the parameters of 14-check-licence.
type licenceParams struct {
	Activate bool `json:"activate"`
}

// record writes the licence's record for a Windows whose installation began at
// a time, from what its scripts told.
func (s *Stage) record(w *stage.Work, began time.Time, applied []bake.Applied) error {
	for _, a := range applied {
		if a.Script != licenceScript {
			continue
		}
		g, err := licence.FromFacts(a.Facts)
		if err != nil {
			return err
		}
		r := licence.New(began, s.host.Now(), g)
		s.explain(&r)
		if r.Doubt != "" {
			warn(w, "the licence's clock is doubtful: "+r.Doubt)
		}
		if r.Evaluation && !r.Activated && s.cfg.Activate {
			warn(w, "the evaluation could not be activated ("+r.Activation+"): Windows shuts itself down from "+licence.Date(r.GraceEnds)+" on")
		}
		data, err := r.Encode()
		if err != nil {
			return err
		}
		return os.WriteFile(w.Out(LicenceOutput), data, 0o644)
	}
	return errors.New("the guest was not asked for its licence")
}

// explain says why an evaluation is or is not activated where the guest has
// nothing to say on it.
func (s *Stage) explain(r *licence.Record) {
	switch {
	case !r.Evaluation || r.Activation != "":
	case r.Activated:
		r.Activation = "Windows has activated itself"
	case s.cfg.Why != "":
		r.Activation = "not tried: " + s.cfg.Why
	default:
		r.Activation = "not tried"
	}
}

func warn(w *stage.Work, message string) {
	w.Sink.Emit(report.Event{Kind: report.Warning, Message: message})
}
