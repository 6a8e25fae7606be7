// Package report is the language in which the engine tells what it is doing:
// a stream of events that a renderer (terminal, plain lines, JSON lines,
// Packer's Ui) turns into words. It is a leaf: it imports nothing of ours.
package report

import (
	"sync"
	"time"
)

// Kind says what an Event is about.
type Kind string

// The kinds of events, in the order in which a stage usually emits them.
const (
	StageStarted  Kind = "stage-started"  // a stage begins to run; Expected is set where it is known
	StageProgress Kind = "stage-progress" // what it does right now; Done/Total may be set
	StageHit      Kind = "stage-hit"      // a stage's result was found in the store
	StageDone     Kind = "stage-done"     // a stage ended well; Elapsed is set
	StageFailed   Kind = "stage-failed"   // a stage failed; Message is the error, Elapsed is set
	StageStopped  Kind = "stage-stopped"  // a stage was cancelled: by the user, or since another failed; as StageFailed
	MachineKept   Kind = "machine-kept"   // a stage failed, and its machine runs on until the user ends wbox; Kept is set
	Warning       Kind = "warning"        // something the user should know
	Note          Kind = "note"           // a hint that is not a warning
	Log           Kind = "log"            // detail for the run folder and -v
)

// Event is one thing that happened. It is marshalled as one JSON line into
// a run's events.jsonl, so its field names are part of the format.
type Event struct {
	Time     time.Time     `json:"time"`
	Kind     Kind          `json:"kind"`
	Stage    string        `json:"stage,omitempty"`
	Message  string        `json:"message,omitempty"`
	Done     int64         `json:"done,omitempty"`  // bytes or items done so far
	Total    int64         `json:"total,omitempty"` // bytes or items in all, 0 where unknown
	Elapsed  time.Duration `json:"elapsed_ns,omitempty"`
	Kept     *Kept         `json:"kept,omitempty"`        // with MachineKept
	Expected time.Duration `json:"expected_ns,omitempty"` // how long such a stage took here before, 0 where none was measured
}

// Sink receives events. Implementations are safe for concurrent use.
type Sink interface {
	Emit(Event)
}

// SinkFunc makes a Sink of a function, which must be safe for concurrent use.
type SinkFunc func(Event)

// Emit calls f.
func (f SinkFunc) Emit(e Event) { f(e) }

// Discard drops every event.
var Discard Sink = SinkFunc(func(Event) {})

// Tee returns a Sink that passes every event, stamped with the time if it has
// none, to each of the sinks, one event at a time.
func Tee(sinks ...Sink) Sink {
	var mu sync.Mutex
	return SinkFunc(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Time.IsZero() {
			e.Time = time.Now()
		}
		for _, s := range sinks {
			s.Emit(e)
		}
	})
}

// ForStage returns a Sink that fills in the stage's name where it is empty.
func ForStage(s Sink, stage string) Sink {
	return SinkFunc(func(e Event) {
		if e.Stage == "" {
			e.Stage = stage
		}
		s.Emit(e)
	})
}
