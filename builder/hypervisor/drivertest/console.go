package drivertest

import (
	"errors"
	"strings"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// console: who asked for a console gets one with a password of its own, on
// loopback only; nobody else does.
func console(s *suite) {
	without, _ := s.start(Idle)
	if server, ok := without.(hypervisor.ConsoleServer); !ok {
		s.Skip("the driver's machines have no console")
	} else if c, err := server.Console(s.Context()); err == nil {
		s.Errorf("a console that nobody asked for: %s", c.URL)
	}
	cfg := s.Config(s.T, Idle)
	cfg.Console = true
	m, err := s.driver.Start(s.Context(), cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { m.Kill() })
	server := m.(hypervisor.ConsoleServer)
	c, err := server.Console(s.Context())
	if err != nil || !strings.HasPrefix(c.URL, "vnc://127.0.0.1:") || c.Password == "" || strings.Contains(c.URL, c.Password) {
		s.Errorf("console %+v, %v", c, err)
	}
	if err := m.Kill(); err != nil {
		s.Fatal(err)
	}
	if _, err := server.Console(s.Context()); !errors.Is(err, hypervisor.ErrPoweredOff) {
		s.Errorf("the console of a machine that is off: %v", err)
	}
}
