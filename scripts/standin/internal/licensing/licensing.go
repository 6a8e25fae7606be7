// Package licensing plays Windows' licensing service: an evaluation that begins
// with Setup, is activated where the network lets the guest out, and ends. No
// licence of anything is in it.
//
// It must not import the agent or anything that answers commands.
package licensing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// The values of LicenseStatus that occur; source: Microsoft's reference of
// SoftwareLicensingProduct.
const (
	Licensed     = 1
	OOBGrace     = 2
	Notification = 5
)

// What an evaluation of Windows Server gives; source: Microsoft's Evaluation
// Center.
const (
	grace      = 10 * 24 * time.Hour
	evaluation = 180 * 24 * time.Hour
)

// Licence is what SoftwareLicensingProduct shows of Windows.
type Licence struct {
	Description string `json:"description"`
	Status      int    `json:"status"`
	Remaining   int    `json:"remaining"` // minutes
}

// IsEvaluation says whether an evaluation is installed.
func IsEvaluation(s state.State) bool { return strings.HasSuffix(s.Edition, "Eval") }

// Of returns the licence at a time.
func Of(s state.State, now time.Time) Licence {
	if !IsEvaluation(s) {
		return Licence{"Windows(R) Operating System, VOLUME_KMSCLIENT channel", Licensed, 0}
	}
	l := Licence{Description: "Windows(R) Operating System, TIMEBASED_EVAL channel", Status: OOBGrace}
	end := s.Installed.Add(grace)
	if s.Activated {
		l.Status, end = Licensed, s.Installed.Add(evaluation)
	}
	if l.Remaining = int(end.Sub(now) / time.Minute); l.Remaining <= 0 {
		l.Status, l.Remaining = Notification, 0
	}
	return l
}

// Activate activates an evaluation. outside says whether the network lets the
// guest out; nobody is asked for anything there.
func Activate(ctx context.Context, store *state.Store, outside func(context.Context) error) error {
	if outside == nil {
		return errors.New("the stand-in has no network")
	}
	if err := outside(ctx); err != nil {
		return fmt.Errorf("the network does not lead out: %w", err)
	}
	return store.Change(func(s *state.State) error { s.Activated = true; return nil })
}
