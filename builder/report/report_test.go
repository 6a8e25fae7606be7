package report

import (
	"encoding/json"
	"sync"
	"testing"
	"time"
)

func TestTeePassesEachEventToAllOneAtATime(t *testing.T) {
	var a, b []Event // no lock of their own: the race detector tells if Tee has none
	tee := Tee(SinkFunc(func(e Event) { a = append(a, e) }), SinkFunc(func(e Event) { b = append(b, e) }), Discard)
	var wg sync.WaitGroup
	const n = 50
	for range n {
		wg.Go(func() { tee.Emit(Event{Kind: Note, Message: "x"}) })
	}
	wg.Wait()
	if len(a) != n || len(b) != n {
		t.Fatalf("%d and %d events arrived, want %d", len(a), len(b), n)
	}
	for i := range a {
		if a[i].Time.IsZero() || !a[i].Time.Equal(b[i].Time) {
			t.Fatalf("event %d is stamped %v and %v", i, a[i].Time, b[i].Time)
		}
	}
}

func TestTeeKeepsAGivenTime(t *testing.T) {
	when := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	var got Event
	Tee(SinkFunc(func(e Event) { got = e })).Emit(Event{Time: when})
	if !got.Time.Equal(when) {
		t.Errorf("got %v", got.Time)
	}
}

// The names are those of events.jsonl and of --progress json: programs read them.
func TestAnEventsJSON(t *testing.T) {
	for want, e := range map[string]Event{
		`{"time":"2026-08-01T12:00:00Z","kind":"stage-progress","stage":"kube","message":"compiling","done":1,"total":3}`: {
			Kind: StageProgress, Stage: "kube", Message: "compiling", Done: 1, Total: 3},
		`{"time":"2026-08-01T12:00:00Z","kind":"stage-done","stage":"kube","elapsed_ns":2000000000}`: {
			Kind: StageDone, Stage: "kube", Elapsed: 2 * time.Second},
		`{"time":"2026-08-01T12:00:00Z","kind":"note"}`: {Kind: Note},
	} {
		e.Time = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
		got, err := json.Marshal(e)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}
