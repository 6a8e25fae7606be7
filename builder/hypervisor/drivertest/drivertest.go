// Package drivertest is the conformance suite of hypervisor.Driver: what the
// engine relies on, every driver proves here, the fake included. It is for tests
// only and must not import a driver, spec, stage or a stage.
package drivertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// Guest names a behaviour of a guest that the suite needs. Each begins by
// writing something to its serial port.
type Guest string

// The guests of the suite.
const (
	Idle      Guest = "idle"       // then does nothing for ever
	Busy      Guest = "busy"       // then goes on writing to its serial port
	PowersOff Guest = "powers-off" // then switches itself off, a moment later
	Resets    Guest = "resets"     // then resets itself, at every boot
	Obeys     Guest = "obeys"      // then waits for its power button and switches itself off
)

// Options adapt the suite to a driver.
type Options struct {
	// Config makes what is needed for a guest in new temporary folders and
	// returns the machine's Config. SerialLog must be set, Forwards must not.
	Config func(t *testing.T, g Guest) hypervisor.Config
	// Crash ends the machine as a fault of the hypervisor would.
	Crash func(t *testing.T, m hypervisor.Machine)
	// Gone says whether nothing of a machine is left on this host, such as its
	// process. It may be nil.
	Gone func(m hypervisor.Machine) bool
	// Limit bounds each wait. Default: 30 s.
	Limit time.Duration
}

// Run runs the suite; newDriver returns a driver of its own for each test.
func Run(t *testing.T, newDriver func(t *testing.T) hypervisor.Driver, opts Options) {
	if opts.Limit == 0 {
		opts.Limit = 30 * time.Second
	}
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"Probe", probe},
		{"Kill", kill},
		{"PowerOff", powerOff},
		{"PowerDown", powerDown},
		{"Resets", resets},
		{"Activity", activity},
		{"Crash", crash},
		{"Endpoints", endpoints},
		{"CancelledStart", cancelledStart},
		{"StartContextEnds", startContextEnds},
		{"InvalidConfig", invalidConfig},
		{"Screen", screen},
		{"Keys", keys},
		{"Console", console},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			for _, name := range []string{"TMPDIR", "TMP", "TEMP"} { // so that what is left there is seen
				t.Setenv(name, temp)
			}
			c.test(&suite{T: t, Options: opts, driver: newDriver(t), temp: temp})
		})
	}
}

// suite is what one test of the suite works with.
type suite struct {
	*testing.T
	Options
	driver hypervisor.Driver
	temp   string
}

// start starts a guest and waits until it has written to its serial port.
func (s *suite) start(g Guest, forwards ...hypervisor.Forward) (hypervisor.Machine, hypervisor.Config) {
	s.Helper()
	cfg := s.Config(s.T, g)
	cfg.Forwards = forwards
	m, err := s.driver.Start(s.Context(), cfg)
	if err != nil {
		s.Fatalf("starting: %v", err)
	}
	s.Cleanup(func() { m.Kill() })
	if g != PowersOff {
		s.until("the first sign on the serial port", func() bool { return fileSize(cfg.SerialLog) > 0 })
	}
	return m, cfg
}

// until waits for a condition, under the suite's limit.
func (s *suite) until(what string, cond func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.Limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			s.Fatalf("waited %v in vain for %s", s.Limit, what)
		case <-tick.C:
		}
	}
}

// off waits for a machine's end.
func (s *suite) off(m hypervisor.Machine) {
	s.Helper()
	s.until("the machine to be off", func() bool { return isOff(m) })
}

func isOff(m hypervisor.Machine) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// nothingLeft checks that a machine that is off has left nothing but files that
// were asked for.
func (s *suite) nothingLeft(m hypervisor.Machine, cfg hypervisor.Config) {
	s.Helper()
	if m != nil && s.Gone != nil && !s.Gone(m) {
		s.Error("something of the machine is still there")
	}
	for _, dir := range []string{s.temp, cfg.Dir} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && path != dir && (dir == s.temp || !d.Type().IsRegular()) {
				s.Errorf("%s was left behind", path)
			}
			return err
		})
		if err != nil {
			s.Error(err)
		}
	}
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func probe(s *suite) {
	first, err := s.driver.Probe(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if s.driver.Name() == "" || first.Version == "" {
		s.Errorf("driver %q, version %q: want both", s.driver.Name(), first.Version)
	}
	switch first.Accelerator {
	case hypervisor.KVM, hypervisor.HVF:
	case hypervisor.Emulation:
		if first.AcceleratorNote == "" {
			s.Error("nothing says why there is no acceleration")
		}
	default:
		s.Errorf("accelerator %q is not one", first.Accelerator)
	}
	again, err := s.driver.Probe(s.Context())
	if err != nil || !reflect.DeepEqual(first, again) {
		s.Errorf("probed again: %+v, %v; before: %+v", again, err, first)
	}
	s.nothingLeft(nil, hypervisor.Config{Dir: s.TempDir()})
}

func cancelledStart(s *suite) {
	cfg := s.Config(s.T, Idle)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if m, err := s.driver.Start(ctx, cfg); !errors.Is(err, context.Canceled) {
		s.Errorf("starting under an ended context: %v, %v", m, err)
	}
	s.nothingLeft(nil, cfg)

	// At any moment of the start the context may end; then there is a machine or an error.
	for delay := time.Millisecond; delay < 100*time.Millisecond; delay *= 2 {
		cfg := s.Config(s.T, Idle)
		ctx, cancel := context.WithTimeout(s.Context(), delay)
		begin := time.Now()
		m, err := s.driver.Start(ctx, cfg)
		cancel()
		if took := time.Since(begin) - delay; took > 5*time.Second {
			s.Errorf("Start returned %v after its context had ended", took)
		}
		switch {
		case err == nil:
			if err := m.Kill(); err != nil {
				s.Error(err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			s.Errorf("cancelled after %v: %v", delay, err)
		}
		s.nothingLeft(m, cfg)
	}
}

func invalidConfig(s *suite) {
	for what, spoil := range map[string]func(*hypervisor.Config){
		"no processors": func(c *hypervisor.Config) { c.CPUs = 0 },
		"a bad name":    func(c *hypervisor.Config) { c.Name = "a,readonly=on" },
		"no disk":       func(c *hypervisor.Config) { c.Disk = "" },
	} {
		cfg := s.Config(s.T, Idle)
		spoil(&cfg)
		if m, err := s.driver.Start(s.Context(), cfg); err == nil {
			s.Errorf("%s was accepted", what)
			m.Kill()
		}
	}
}
