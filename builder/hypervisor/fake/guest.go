package fake

import (
	"net"
	"os"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// Guest is one boot of a fake machine, as seen from the inside. What it is told
// after that boot's end has no effect.
type Guest struct {
	// Config is what the machine was started with.
	Config hypervisor.Config
	// Boot counts the boots of the machine from 1.
	Boot int

	m    *Machine
	boot *bootState
}

// during calls f with the machine's lock held, unless this boot has ended.
func (g *Guest) during(f func()) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	select {
	case <-g.boot.ended:
	default:
		f()
	}
}

// PowerOff switches the machine off, cleanly.
func (g *Guest) PowerOff() {
	current := false
	g.during(func() { current = true })
	if current {
		g.m.end(nil)
	}
}

// Reset ends this boot: its context, its services, their connections. The next
// boot begins when the Boot function has returned.
func (g *Guest) Reset() {
	g.during(func() {
		g.m.resets++
		g.m.activity++
		g.m.endBoot()
	})
}

// Serial writes text to the serial port: into Config.SerialLog, if that is set.
func (g *Guest) Serial(text string) error {
	var err error
	g.during(func() {
		g.m.activity += uint64(len(text))
		if g.Config.SerialLog == "" {
			return
		}
		var f *os.File
		if f, err = os.OpenFile(g.Config.SerialLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			return
		}
		defer f.Close()
		_, err = f.WriteString(text)
	})
	return err
}

// Work makes the machine's activity grow by n, as disk operations do.
func (g *Guest) Work(n uint64) { g.during(func() { g.m.activity += n }) }

// Serve lets handler answer connections to a forwarded port, each in a
// goroutine of its own. The handler closes its connection.
func (g *Guest) Serve(forward string, handler func(net.Conn)) {
	g.during(func() { g.boot.serve[forward] = handler })
}

// PowerButton receives when the host asks for a shutdown.
func (g *Guest) PowerButton() <-chan struct{} { return g.m.button }
