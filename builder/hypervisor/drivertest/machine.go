package drivertest

import (
	"context"
	"errors"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

func kill(s *suite) {
	m, cfg := s.start(Idle)
	if isOff(m) {
		s.Fatalf("the machine is off already: %v", m.Err())
	}
	for range 2 {
		if err := m.Kill(); err != nil {
			s.Errorf("killing: %v", err)
		}
		if !isOff(m) {
			s.Error("Kill returned before the machine was off")
		}
	}
	if m.Err() != nil {
		s.Errorf("after Kill: %v", m.Err())
	}
	if fileSize(cfg.SerialLog) == 0 {
		s.Error("the serial log is gone")
	}
	s.nothingLeft(m, cfg)
	if _, err := m.Activity(s.Context()); !errors.Is(err, hypervisor.ErrPoweredOff) {
		s.Errorf("asking a machine that is off for its activity: %v", err)
	}
}

func powerOff(s *suite) {
	m, cfg := s.start(PowersOff)
	s.off(m)
	if m.Err() != nil {
		s.Errorf("after a clean power-off: %v", m.Err())
	}
	if err := m.Kill(); err != nil {
		s.Errorf("killing a machine that is off: %v", err)
	}
	if m.Err() != nil {
		s.Errorf("after a clean power-off and Kill: %v", m.Err())
	}
	if err := m.PowerDown(s.Context()); !errors.Is(err, hypervisor.ErrPoweredOff) {
		s.Errorf("pressing the power button of a machine that is off: %v", err)
	}
	s.nothingLeft(m, cfg)
}

func powerDown(s *suite) {
	deaf, _ := s.start(Idle)
	m, cfg := s.start(Obeys) // beside the other one
	for _, m := range []hypervisor.Machine{deaf, m} {
		if err := m.PowerDown(s.Context()); err != nil {
			s.Fatalf("pressing the power button: %v", err)
		}
	}
	s.off(m)
	if m.Err() != nil {
		s.Errorf("after an orderly shutdown: %v", m.Err())
	}
	s.nothingLeft(m, cfg)
	if isOff(deaf) {
		s.Errorf("a guest that does not heed its power button is off: %v", deaf.Err())
	}
}

func resets(s *suite) {
	quiet, _ := s.start(Idle)
	m, _ := s.start(Resets)
	s.until("two resets", func() bool { return m.Resets() >= 2 || isOff(m) })
	if isOff(m) {
		s.Errorf("a reset has ended the machine: %v", m.Err())
	}
	if n := quiet.Resets(); n != 0 {
		s.Errorf("a guest that was not reset counts %d", n)
	}
}

func activity(s *suite) {
	m, _ := s.start(Busy)
	last := uint64(0)
	for grown := 0; grown < 3; grown++ {
		s.until("activity to grow", func() bool {
			now, err := m.Activity(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			if now < last {
				s.Fatalf("activity fell from %d to %d", last, now)
			}
			more := now > last
			last = now
			return more
		})
	}
}

func crash(s *suite) {
	m, cfg := s.start(Idle)
	s.Crash(s.T, m)
	s.off(m)
	if m.Err() == nil {
		s.Error("a crash is taken for a clean end")
	}
	if err := m.Kill(); err != nil || m.Err() == nil {
		s.Errorf("killing after a crash: %v; and then: %v", err, m.Err())
	}
	s.nothingLeft(m, cfg)
}

func endpoints(s *suite) {
	m, cfg := s.start(Idle, hypervisor.Forward{Name: "one", GuestPort: 5986}, hypervisor.Forward{Name: "two", GuestPort: 22})
	one, err := m.Endpoint("one")
	if err != nil {
		s.Fatal(err)
	}
	two, err := m.Endpoint("two")
	if err != nil {
		s.Fatal(err)
	}
	if one == two || !one.Addr().IsLoopback() || !two.Addr().IsLoopback() {
		s.Errorf("endpoints %v and %v: want different ones on the loopback interface", one, two)
	}
	if e, err := m.Endpoint("three"); err == nil {
		s.Errorf("a port that is not forwarded is at %v", e)
	}
	if !s.answers(one.String()) || !s.answers(two.String()) {
		s.Error("an endpoint accepts no connections")
	}
	_, port, _ := net.SplitHostPort(one.String())
	for _, addr := range otherAddresses(s) {
		if s.answers(net.JoinHostPort(addr, port)) {
			s.Errorf("the guest can be reached from outside this host, at %s", addr)
		}
	}
	if err := m.Kill(); err != nil {
		s.Error(err)
	}
	if s.answers(one.String()) {
		s.Error("an endpoint of a machine that is off accepts connections")
	}
	s.nothingLeft(m, cfg)
}

func (s *suite) answers(addr string) bool {
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// otherAddresses returns this host's addresses that others can reach.
func otherAddresses(s *suite) []string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			out = append(out, n.IP.String())
		}
	}
	return out
}

func startContextEnds(s *suite) {
	cfg := s.Config(s.T, Busy)
	ctx, cancel := context.WithCancel(s.Context())
	m, err := s.driver.Start(ctx, cfg)
	if err != nil {
		s.Fatal(err)
	}
	defer m.Kill()
	cancel()
	s.until("activity after the start's context has ended", func() bool {
		return isOff(m) || fileSize(cfg.SerialLog) > 1
	})
	if isOff(m) {
		s.Errorf("the machine ended with the context of its start: %v", m.Err())
	}
}

func screen(s *suite) {
	m, cfg := s.start(Idle)
	shooter, ok := m.(hypervisor.Screenshotter)
	features, err := s.driver.Probe(s.Context())
	if err != nil || features.Screenshot != ok {
		s.Fatalf("features say %v, the machine %v (%v)", features.Screenshot, ok, err)
	}
	if !ok {
		return
	}
	path := filepath.Join(s.TempDir(), "screen, first.png")
	if err := os.WriteFile(path, []byte("an older one"), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := shooter.Screenshot(s.Context(), path); err != nil {
		s.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	if img, err := png.Decode(f); err != nil || img.Bounds().Empty() {
		s.Errorf("the screenshot is no image: %v", err)
	}
	if err := m.Kill(); err != nil {
		s.Error(err)
	}
	if err := shooter.Screenshot(s.Context(), path); !errors.Is(err, hypervisor.ErrPoweredOff) {
		s.Errorf("taking a screenshot of a machine that is off: %v", err)
	}
	s.nothingLeft(m, cfg)
}

func keys(s *suite) {
	m, _ := s.start(Idle)
	sender, ok := m.(hypervisor.KeySender)
	features, err := s.driver.Probe(s.Context())
	if err != nil || features.SendKeys != ok {
		s.Fatalf("features say %v, the machine %v (%v)", features.SendKeys, ok, err)
	}
	if !ok {
		return
	}
	if err := sender.SendKeys(s.Context(), "ret", "y", "f8"); err != nil {
		s.Error(err)
	}
}
