package report

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestThinKeepsFirstLastAndAllThatIsNotCounted(t *testing.T) {
	var got []string
	clock := time.Unix(0, 0)
	s := &thinned{interval: time.Second, now: func() time.Time { return clock },
		to: SinkFunc(func(e Event) { got = append(got, fmt.Sprintf("%s%d", e.Message, e.Done)) })}
	counted := func(after time.Duration, msg string, done int64) {
		clock = clock.Add(after)
		s.Emit(Event{Kind: StageProgress, Message: msg, Done: done, Total: 100})
	}
	counted(0, "a", 1)                                // the first
	counted(time.Millisecond, "a", 2)                 // too soon
	s.Emit(Event{Kind: StageProgress, Message: "b"})  // not counted
	s.Emit(Event{Kind: Log, Message: "c", Total: 10}) // no progress
	counted(time.Millisecond, "a", 3)                 // still too soon
	counted(time.Second, "a", 4)
	counted(time.Millisecond, "d", 5) // something else is done
	counted(time.Millisecond, "d", 6)
	counted(time.Millisecond, "d", 100) // the last
	if want := "a1 b0 c0 a4 d5 d100"; strings.Join(got, " ") != want {
		t.Errorf("passed %v, want %s", got, want)
	}
}

func TestForStageKeepsAGivenName(t *testing.T) {
	var got []string
	s := ForStage(SinkFunc(func(e Event) { got = append(got, e.Stage) }), "mine")
	s.Emit(Event{})
	s.Emit(Event{Stage: "theirs"})
	if strings.Join(got, " ") != "mine theirs" {
		t.Errorf("stages %v", got)
	}
}
