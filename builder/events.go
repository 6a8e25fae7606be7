package builder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/wbox-dev/wbox/builder/report"
)

// eventLog is a run's events.jsonl: every event, one JSON object a line.
type eventLog struct {
	mu sync.Mutex
	f  *os.File
}

func openEvents(dir string) (*eventLog, error) {
	f, err := os.Create(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("making the run's log: %w", err)
	}
	return &eventLog{f: f}, nil
}

// Emit writes one line. A log that can't be written does not stop a build.
func (l *eventLog) Emit(e report.Event) {
	b, err := json.Marshal(e)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Write(append(b, '\n')) //nolint:errcheck // said above
}

// Close closes the file.
func (l *eventLog) Close() error { return l.f.Close() }
