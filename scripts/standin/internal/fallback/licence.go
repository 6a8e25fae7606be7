package fallback

import (
	"context"
	"fmt"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/licensing"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// testLicence: the evaluation is activated, or that was tried, or not asked for.
func testLicence(_ context.Context, env *Env, p params) (string, error) {
	activate := false
	if err := p.get("activate", &activate); err != nil {
		return "", err
	}
	s := env.State.Get()
	if activate && s.Activation == "" && licensing.Of(s, time.Now()).Status != licensing.Licensed {
		return "the evaluation is not activated", nil
	}
	return "", nil
}

// setLicence tries once: the network of a stand-in doesn't come up late.
func setLicence(ctx context.Context, env *Env, p params) (bool, error) {
	missing, err := testLicence(ctx, env, p)
	if missing == "" || err != nil {
		return false, err
	}
	outcome := "activated"
	if err := licensing.Activate(ctx, env.State, env.Outside); err != nil {
		outcome = fmt.Sprintf("not activated: %v", err)
	}
	return false, env.State.Change(func(s *state.State) error { s.Activation = outcome; return nil })
}

func licenceFacts(env *Env) map[string]any {
	s, now := env.State.Get(), time.Now()
	l := licensing.Of(s, now)
	return map[string]any{"edition": s.Edition, "evaluation": licensing.IsEvaluation(s), "licenseStatus": l.Status,
		"gracePeriodRemaining": l.Remaining, "now": now.UTC(), "installed": s.Installed, "activation": s.Activation}
}
