package licence

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	began = time.Date(2026, 12, 1, 16, 20, 0, 0, time.UTC)
	seen  = began.Add(40 * time.Minute)
)

// fresh is an evaluation that was not activated, as Windows reports it.
func fresh() Guest {
	return Guest{Edition: "ServerDatacenterEval", Evaluation: true, Installed: began.Add(10 * time.Minute), Now: seen, Status: 2,
		Activation: "was not tried"}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Guest)
		text   string
		doubt  string
	}{
		{"not activated", func(*Guest) {}, "evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", ""},
		{"activated", func(g *Guest) { g.Status = 1 }, "evaluation, activated: evaluation ends 2027-05-30", ""},
		{"volume", func(g *Guest) { g.Evaluation = false }, "volume or retail: no clock", ""},
		{"Windows names a later end of the grace", func(g *Guest) { g.Remaining = 30 * 1440 },
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", ""},
		{"Windows names an earlier one", func(g *Guest) { g.Remaining = 2 * 1440 },
			"evaluation, not activated: grace ends 2026-12-03, evaluation ends 2027-05-30", ""},
		{"Windows names an earlier end of the evaluation", func(g *Guest) { g.Status, g.Remaining = 1, 90*1440 },
			"evaluation, activated: evaluation ends 2027-03-01", ""},
		{"Windows names its last day", func(g *Guest) { g.Ends = began.Add(20 * day) },
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2026-12-21", ""},
		{"its last day was before it was installed", func(g *Guest) { g.Ends = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC) },
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", ""},
		{"the guest's clock is ahead", func(g *Guest) { g.Now = seen.Add(8 * day) },
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", "the guest's clock said 2026-12-09 17:00 UTC when this host's said 2026-12-01 17:00 UTC"},
		{"the guest was installed long before", func(g *Guest) { g.Installed = began.Add(-2 * time.Hour) },
			"evaluation, not activated: grace ends 2026-12-11, evaluation ends 2027-05-30", "says it was installed at 2026-12-01 14:20 UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := fresh()
			c.change(&g)
			r := New(began, seen, g)
			if r.String() != c.text {
				t.Errorf("%q, want %q", r, c.text)
			}
			if (r.Doubt == "") != (c.doubt == "") || !strings.Contains(r.Doubt, c.doubt) {
				t.Errorf("doubt %q, want %q", r.Doubt, c.doubt)
			}
			data, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := Parse(data)
			if err != nil || !reflect.DeepEqual(back, r) {
				t.Errorf("read back: %+v, %v; want %+v", back, err, r)
			}
		})
	}
}

func TestTooOld(t *testing.T) {
	idle, active, volume := New(began, seen, fresh()), fresh(), fresh()
	active.Status, volume.Evaluation = 1, false
	short := fresh()
	short.Ends = began.Add(20 * day)
	for _, c := range []struct {
		name   string
		record Record
		after  time.Duration
		days   int
		want   string
	}{
		{"young", idle, 6 * day, 30, ""},
		{"grace nearly over", idle, 7*day + time.Hour, 30, "its activation grace ends 2026-12-11, in less than 3 days"},
		{"a smaller margin", idle, 7*day + time.Hour, 1, ""},
		{"the margin reached", idle, 9*day + time.Hour, 1, "its activation grace ends 2026-12-11, in less than 1 day"},
		{"grace over", idle, 10 * day, 30, "its activation grace ended 2026-12-11"},
		{"activated: no grace", New(began, seen, active), 149 * day, 30, ""},
		{"activated, a month left", New(began, seen, active), 151 * day, 30, "its evaluation ends 2027-05-30, in less than 30 days"},
		{"activated, over", New(began, seen, active), 200 * day, 1, "its evaluation ended 2027-05-30"},
		{"volume", New(began, seen, volume), 4000 * day, 150, ""},
		{"no younger to be had", New(began, seen, short), time.Hour, 30, ""},
		{"and a day later", New(began, seen, short), 25 * time.Hour, 30, "its evaluation ends 2026-12-21, in less than 30 days"},
		{"clock moved back", idle, -400 * day, 30, ""},
	} {
		if got := c.record.TooOld(began.Add(c.after), c.days); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFromFacts(t *testing.T) {
	facts := func() map[string]any {
		return map[string]any{"edition": "ServerDatacenterEval", "evaluation": true, "installed": "2026-12-01T16:30:00Z",
			"now": "2026-12-01T17:00:00.1234567Z", "licenseStatus": float64(2), "activation": "was not tried"}
	}
	g, err := FromFacts(facts())
	if want := fresh(); err != nil || g.Installed != want.Installed || g.Status != 2 || !g.Evaluation || g.Activation != want.Activation {
		t.Errorf("%+v, %v", g, err)
	}
	for name, bad := range map[string]any{"edition": nil, "evaluation": "yes", "installed": "yesterday", "now": nil, "licenseStatus": 2.5} {
		f := facts()
		if f[name] = bad; bad == nil {
			delete(f, name)
		}
		if g, err := FromFacts(f); err == nil {
			t.Errorf("%s = %v gives %+v", name, bad, g)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := New(began, seen, fresh()).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"evaluation":true,"installed":"2026-12-01T16:20:00Z"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		if r.Evaluation && r.TooOld(r.EvaluationEnds, 0) == "" {
			t.Errorf("%s never ends", r)
		}
	})
}

// Whatever a guest says, its record can be read back.
func FuzzFromFacts(f *testing.F) {
	f.Add([]byte(`{"edition":"ServerDatacenterEval","evaluation":true,"installed":"2026-12-01T16:30:00Z","now":"2026-12-01T17:00:00Z","licenseStatus":2,"gracePeriodRemaining":14400}`))
	f.Add([]byte(`{"edition":"","evaluation":true,"installed":"9999-12-31T23:59:59-12:00","now":"0001-01-01T00:00:00Z","licenseStatus":-1,"evaluationEndDate":"2026-12-24T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var facts map[string]any
		if json.Unmarshal(data, &facts) != nil {
			return
		}
		g, err := FromFacts(facts)
		if err != nil {
			return
		}
		r := New(began, seen, g)
		line, err := r.Encode()
		if err != nil {
			t.Fatalf("%+v: %v", g, err)
		}
		if back, err := Parse(line); err != nil || back.String() != r.String() {
			t.Errorf("%s is read back as %s, %v", r, back, err)
		}
		if r.Evaluation && (r.EvaluationEnds.After(began.Add(EvaluationDays*day)) || (!r.Activated && r.GraceEnds.After(began.Add(GraceDays*day)))) {
			t.Errorf("%+v: a guest made its own clock longer: %s", g, r)
		}
	})
}
