package licensing

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

var setup = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestTheYearOfAnEvaluation(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name      string
		edition   string
		activated bool
		after     time.Duration
		status    int
		remaining int
	}{
		{"new", "ServerDatacenterEval", false, 0, OOBGrace, 10 * 1440},
		{"last minute", "ServerDatacenterEval", false, 10*day - time.Minute, OOBGrace, 1},
		{"grace over", "ServerDatacenterEval", false, 10 * day, Notification, 0},
		{"activated", "ServerDatacenterEval", true, 11 * day, Licensed, 169 * 1440},
		{"over", "ServerDatacenterEval", true, 180 * day, Notification, 0},
		{"volume", "ServerDatacenter", false, 1000 * day, Licensed, 0},
	} {
		got := Of(state.State{Edition: c.edition, Installed: setup, Activated: c.activated}, setup.Add(c.after))
		if got.Status != c.status || got.Remaining != c.remaining {
			t.Errorf("%s: %+v, want status %d and %d minutes", c.name, got, c.status, c.remaining)
		}
	}
}

func TestActivate(t *testing.T) {
	dir := t.TempDir()
	if err := state.Create(dir, state.State{Edition: "ServerDatacenterEval"}); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, outside := range map[string]func(context.Context) error{"no network": nil, "no way out": func(context.Context) error { return errors.New("timeout") }} {
		if err := Activate(t.Context(), store, outside); err == nil || store.Get().Activated {
			t.Errorf("%s: activated, %v", name, err)
		}
	}
	if err := Activate(t.Context(), store, func(context.Context) error { return nil }); err != nil || !store.Get().Activated {
		t.Errorf("not activated: %v", err)
	}
}
