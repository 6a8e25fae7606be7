package fake

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/drivertest"
)

// play is a Boot that behaves as the machine's name says.
func play(ctx context.Context, g *Guest) {
	g.Serial("A")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	switch drivertest.Guest(g.Config.Name) {
	case drivertest.Busy:
		for ctx.Err() == nil {
			g.Serial("B")
			<-tick.C
		}
	case drivertest.PowersOff:
		<-tick.C
		g.PowerOff()
	case drivertest.Resets:
		<-tick.C
		g.Reset()
	case drivertest.Obeys:
		select {
		case <-g.PowerButton():
			g.PowerOff()
		case <-ctx.Done():
		}
	}
}

func config(t *testing.T, g drivertest.Guest) hypervisor.Config {
	dir := t.TempDir()
	return hypervisor.Config{
		Name: string(g), Dir: dir, CPUs: 1, MemoryMiB: 512,
		Disk: filepath.Join(dir, "disk.qcow2"), SerialLog: filepath.Join(dir, "serial.log"),
	}
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) hypervisor.Driver { return New(play) }, drivertest.Options{
		Config: config,
		Crash:  func(_ *testing.T, m hypervisor.Machine) { m.(*Machine).Crash(errors.New("crashed")) },
		Limit:  5 * time.Second,
	})
}

// TestServicesEndWithTheirBoot: a reset takes the guest's connections along and
// its ports are deaf until the next boot serves them again.
func TestServicesEndWithTheirBoot(t *testing.T) {
	again := make(chan struct{})
	d := New(func(ctx context.Context, g *Guest) {
		if g.Boot == 2 {
			select {
			case <-again:
			case <-ctx.Done():
				return
			}
		}
		g.Serve("echo", func(c net.Conn) {
			defer c.Close()
			io.CopyN(c, c, 1)
			io.Copy(io.Discard, c)
		})
		g.Serial("serving")
		<-ctx.Done()
	})
	cfg := config(t, "echo")
	cfg.Forwards = []hypervisor.Forward{{Name: "echo", GuestPort: 7}}
	m, err := d.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	ep, err := m.Endpoint("echo")
	if err != nil {
		t.Fatal(err)
	}
	conn := eventuallyEchoes(t, ep.String())
	defer conn.Close()
	machine := d.Machines()[0]
	(&Guest{Config: cfg, m: machine, boot: machine.boot}).Reset()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection has survived the reset")
	}
	if c, ok := echoes(ep.String()); ok {
		c.Close()
		t.Error("the guest answers while it boots")
	}
	close(again)
	eventuallyEchoes(t, ep.String()).Close()
	if m.Resets() != 1 {
		t.Errorf("%d resets", m.Resets())
	}
}

// echoes says whether a connection to addr returns a byte, and returns it open.
func echoes(addr string) (net.Conn, bool) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, false
	}
	c.Write([]byte("x"))
	if n, _ := c.Read(make([]byte, 1)); n != 1 {
		c.Close()
		return nil, false
	}
	return c, true
}

func eventuallyEchoes(t *testing.T, addr string) net.Conn {
	t.Helper()
	for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); {
		if c, ok := echoes(addr); ok {
			return c
		}
	}
	t.Fatal("the guest does not answer")
	return nil
}
