package fake

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// Machine is one fake machine, as seen from the host.
type Machine struct {
	// Config is what the machine was started with.
	Config hypervisor.Config

	listeners map[string]net.Listener
	done      chan struct{}
	button    chan struct{} // holds a token once the power button was pressed

	mu       sync.Mutex
	off      bool
	err      error
	resets   int
	activity uint64
	keys     []string
	boot     *bootState
}

// bootState is what ends with a boot: services, connections, the context.
type bootState struct {
	cancel  context.CancelFunc
	ended   chan struct{}
	serve   map[string]func(net.Conn)
	clients []net.Conn
}

func newMachine(cfg hypervisor.Config, noPorts bool) (*Machine, error) {
	m := &Machine{
		Config:    cfg,
		listeners: make(map[string]net.Listener),
		done:      make(chan struct{}),
		button:    make(chan struct{}, 1),
		boot:      newBoot(func() {}),
	}
	for _, f := range cfg.Forwards {
		if noPorts {
			m.listeners[f.Name] = nowhere{}
			continue
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			m.end(nil)
			return nil, fmt.Errorf("forwarding %s: %w", f.Name, err)
		}
		m.listeners[f.Name] = l
		go m.accept(f.Name, l)
	}
	return m, nil
}

func newBoot(cancel context.CancelFunc) *bootState {
	return &bootState{cancel: cancel, ended: make(chan struct{}), serve: make(map[string]func(net.Conn))}
}

// live runs one boot after the other.
func (m *Machine) live(boot Boot) {
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(context.Background())
		b := newBoot(cancel)
		m.mu.Lock()
		if m.off {
			m.mu.Unlock()
			cancel()
			return
		}
		m.boot = b
		m.mu.Unlock()
		boot(ctx, &Guest{Config: m.Config, Boot: n, m: m, boot: b})
		select {
		case <-b.ended:
		case <-m.done:
			return
		}
	}
}

// nowhere is a port that nobody listens on.
type nowhere struct{}

func (nowhere) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (nowhere) Close() error              { return nil }
func (nowhere) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: 1} }

// accept hands connections to what the guest serves; where it serves nothing
// they are closed at once, as a user-mode network does.
func (m *Machine) accept(name string, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		handler := m.boot.serve[name]
		if handler != nil && !m.off {
			m.boot.clients = append(m.boot.clients, conn)
			go handler(conn)
		} else {
			conn.Close()
		}
		m.mu.Unlock()
	}
}

// endBoot takes down what the current boot has. The lock is held.
func (m *Machine) endBoot() {
	m.boot.cancel()
	clear(m.boot.serve)
	for _, c := range m.boot.clients {
		c.Close()
	}
	m.boot.clients = nil
	select {
	case <-m.boot.ended:
	default:
		close(m.boot.ended)
	}
}

// end switches the machine off, for which only the first reason counts.
func (m *Machine) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return
	}
	m.off, m.err = true, err
	for _, l := range m.listeners {
		l.Close()
	}
	m.endBoot()
	close(m.done)
}

// Endpoint returns the address that a forwarded port has on this host.
func (m *Machine) Endpoint(name string) (netip.AddrPort, error) {
	l, ok := m.listeners[name]
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("the machine %s forwards no port named %q", m.Config.Name, name)
	}
	return l.Addr().(*net.TCPAddr).AddrPort(), nil
}

// Done is closed once the machine is off.
func (m *Machine) Done() <-chan struct{} { return m.done }

// Err says, after Done, why the machine ended: what Crash was given, or nil.
func (m *Machine) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Activity returns the sum of Guest.Work, bytes of Guest.Serial and resets.
func (m *Machine) Activity(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return 0, hypervisor.ErrPoweredOff
	}
	return m.activity, nil
}

// Resets counts the calls of Guest.Reset.
func (m *Machine) Resets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resets
}

// PowerDown presses the power button. See Guest.PowerButton.
func (m *Machine) PowerDown(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return hypervisor.ErrPoweredOff
	}
	select {
	case m.button <- struct{}{}:
	default: // pressed already
	}
	return nil
}

// Kill switches the machine off.
func (m *Machine) Kill() error {
	m.end(nil)
	return nil
}

// Crash ends the machine as if the hypervisor had failed with err.
func (m *Machine) Crash(err error) { m.end(err) }

// Screenshot writes a PNG of one black pixel.
func (m *Machine) Screenshot(_ context.Context, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return hypervisor.ErrPoweredOff
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return png.Encode(f, image.NewGray(image.Rect(0, 0, 1, 1)))
}

// Console returns an address at which nothing is, and a password.
func (m *Machine) Console(context.Context) (hypervisor.Console, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.off:
		return hypervisor.Console{}, hypervisor.ErrPoweredOff
	case !m.Config.Console:
		return hypervisor.Console{}, errors.New("the machine was started without a console")
	}
	return hypervisor.Console{URL: "vnc://127.0.0.1:1", Password: "fake-vnc"}, nil
}

// SendKeys remembers the keys. See Keys.
func (m *Machine) SendKeys(_ context.Context, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return hypervisor.ErrPoweredOff
	}
	m.keys = append(m.keys, keys...)
	return nil
}

// Keys returns all keys that SendKeys has pressed.
func (m *Machine) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.keys)
}
