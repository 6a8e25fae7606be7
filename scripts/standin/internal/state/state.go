// Package state is what the played Windows remembers across reboots: one JSON
// file on the volume that plays C:, replaced as a whole at every change.
//
// Setup writes the first one, the agent all others. The package must not import
// either of them.
package state

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Dir is the folder of the stand-in's own files below C:.
const Dir = "wbox-standin"

// State is everything that is remembered. Fields are added, never given
// another meaning: boxes keep theirs.
type State struct {
	Release      string    `json:"release"` // "2022" or "2025"
	Build        int       `json:"build"`
	Revision     int       `json:"revision"`
	Image        string    `json:"image"`        // the NAME in install.wim
	Edition      string    `json:"edition"`      // such as "ServerStandardEval"
	Installation string    `json:"installation"` // "Server" or "Server Core"
	Installed    time.Time `json:"installed"`
	ComputerName string    `json:"computerName"`
	TimeZone     string    `json:"timeZone"`

	Accounts   []Account         `json:"accounts"`
	AutoLogon  string            `json:"autoLogon,omitempty"` // who logs on at the next boot
	Commands   []Command         `json:"commands,omitempty"`  // still to run, in order
	Letters    map[string]int    `json:"letters"`             // drive letter -> partition number
	Volumes    []Volume          `json:"volumes"`
	Settings   map[string]string `json:"settings,omitempty"` // what the answer file set and nothing here acts on
	WinRM      WinRM             `json:"winrm"`
	Features   map[string]string `json:"features,omitempty"` // name -> "pending" or "installed"
	Scripts    map[string]bool   `json:"scripts,omitempty"`  // scripts that were set by the stand-in itself
	CopyAtBoot bool              `json:"copyAtBoot,omitempty"`
	Fault      string            `json:"fault,omitempty"`      // of the next restart, for tests of the host
	Activated  bool              `json:"activated,omitempty"`  // the evaluation
	Activation string            `json:"activation,omitempty"` // what came of trying, as 14-check-licence notes it
}

// Account is a local account with its password in clear text: nothing in a
// stand-in is secret.
type Account struct {
	Name     string   `json:"name"`
	Password string   `json:"password"`
	Groups   []string `json:"groups,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
}

// Command is a command line that the answer file wants run at the first boot.
type Command struct {
	Pass string `json:"pass"` // "specialize" or "oobeSystem"
	Line string `json:"line"`
}

// Volume is a partition that Setup made.
type Volume struct {
	Number int    `json:"number"`
	Type   string `json:"type"`
	Format string `json:"format"`
	Label  string `json:"label"`
	GUID   string `json:"guid"`
}

// WinRM is how the service listens.
type WinRM struct {
	HTTP             bool   `json:"http"`
	HTTPS            bool   `json:"https"`
	Certificate      string `json:"certificate,omitempty"` // thumbprint of the HTTPS listener's
	Basic            bool   `json:"basic"`
	AllowUnencrypted bool   `json:"allowUnencrypted"`
}

// Account returns the account of that name, compared without case; nil if there
// is none.
func (s *State) Account(name string) *Account {
	for i := range s.Accounts {
		if strings.EqualFold(s.Accounts[i].Name, name) {
			return &s.Accounts[i]
		}
	}
	return nil
}

// Store guards the state of a running system. It is safe for concurrent use.
type Store struct {
	path string
	mu   sync.Mutex
	now  State
}

// Create writes the first state below c, the folder that plays C:.
func Create(c string, first State) error {
	store := &Store{path: filepath.Join(c, Dir, "state.json"), now: first}
	if err := os.MkdirAll(filepath.Dir(store.path), 0o700); err != nil {
		return fmt.Errorf("making the state's folder: %w", err)
	}
	return store.save()
}

// Open reads the state below c.
func Open(c string) (*Store, error) {
	store := &Store{path: filepath.Join(c, Dir, "state.json")}
	data, err := os.ReadFile(store.path)
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	if err := json.Unmarshal(data, &store.now); err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	return store, nil
}

// Get returns a copy of the state.
func (s *Store) Get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c State
	data, err := json.Marshal(s.now)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return s.now
	}
	return c
}

// Change applies a change and writes the result; where either fails the state
// stays as it was.
func (s *Store) Change(change func(*State) error) error {
	next := s.Get()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := change(&next); err != nil {
		return err
	}
	old := s.now
	s.now = next
	if err := s.save(); err != nil {
		s.now = old
		return err
	}
	return nil
}

// save replaces the file, so that a reset in between leaves the old one.
func (s *Store) save() error {
	data, err := json.MarshalIndent(s.now, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(s.path), ".state-")
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(append(data, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), s.path)
	}
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}
