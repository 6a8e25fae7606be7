package media

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Acceptance is the record of an accepted licence.
type Acceptance struct {
	Name     string    `json:"name"`    // of the entry
	SHA256   string    `json:"sha256"`  // of the medium
	Licence  string    `json:"licence"` // as it was shown
	Page     string    `json:"page"`
	How      string    `json:"how"` // such as "--accept-eula"
	Accepted time.Time `json:"accepted"`
}

func (l *Library) licencePath(e Entry) string {
	return filepath.Join(l.dir("licences"), e.SHA256+".json")
}

// Accepted returns the record of an entry's accepted licence, if there is one.
func (l *Library) Accepted(e Entry) (Acceptance, bool) {
	b, err := os.ReadFile(l.licencePath(e))
	if err != nil {
		return Acceptance{}, false
	}
	var a Acceptance
	if json.Unmarshal(b, &a) != nil || a.SHA256 != e.SHA256 || a.Accepted.IsZero() {
		return Acceptance{}, false
	}
	return a, true
}

// accept makes sure that the licence is accepted, once an entry. It asks
// nobody who has to be waited for, unless ask is set.
func (l *Library) accept(ctx context.Context, e Entry, ask bool) error {
	if _, ok := l.Accepted(e); ok {
		return nil
	}
	if l.opts.Licence != nil && l.opts.Asks && !ask {
		return nil // later
	}
	how := ""
	if l.opts.Licence != nil {
		var err error
		if how, err = l.opts.Licence(ctx, e); err != nil {
			return err
		}
	}
	if how == "" {
		return l.notAccepted(e)
	}
	return l.write(ctx, l.licencePath(e), Acceptance{Name: e.Name, SHA256: e.SHA256, Licence: e.Licence, Page: e.Page, How: how,
		Accepted: time.Now().UTC().Truncate(time.Second)})
}

func (l *Library) notAccepted(e Entry) error {
	return &fault.Problem{Class: fault.Input, Field: e.Name, Why: "is downloaded only once its licence is accepted (" + e.Licence + ")",
		Fix: "read it at " + e.Page + " and accept it with --accept-eula"}
}
