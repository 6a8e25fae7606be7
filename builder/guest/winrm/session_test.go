package winrm_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/fake"
	"github.com/wbox-dev/wbox/builder/guest/guesttest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/scripts/standin/winrmd"
)

// TestSession goes the whole way: an access as a bake makes it, its certificate
// in a server, and a session over the wire to a simulated guest that really
// stops answering while it reboots.
func TestSession(t *testing.T) {
	access, err := guest.NewAccess(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, certificate, err := pkcs12.Decode(access.PFX, access.PFXPassword)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}}
	g := fake.New()
	g.Scripts["20-install-features"] = fake.AfterReboot
	g.BusyTests = 1
	s := &winrmd.Server{Basic: func() bool { return true },
		Accounts: func(u string) (string, bool) { return access.Password, u == access.User }}
	machine := &machine{t: t, server: s, config: config}
	s.Shell = shell(func(ctx context.Context, line string, in io.Reader, out, errs io.Writer) int {
		exit := g.Run(ctx, "", line, in, out, errs)
		if strings.HasPrefix(line, "shutdown.exe /r") {
			go machine.reboot()
		}
		return exit
	})
	machine.start("127.0.0.1:0")
	t.Cleanup(machine.stop)

	var transcript lockedBuilder
	session, err := guest.Open(t.Context(), guest.Options{Deadline: time.Minute, Interval: 50 * time.Millisecond, Transcript: &transcript,
		Resets: func() int { return int(machine.resets.Load()) }, // the simulated boot time changes before the wire breaks
		Dial: func(context.Context) (guest.Conn, error) {
			return winrm.Dial(winrm.Config{Addr: machine.addr(), User: access.User, Password: guest.Secret(access.Password),
				TLS: true, PinnedSHA256: access.Pin, OperationTimeout: time.Second, Grace: time.Second})
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	check := func(mode guest.Mode, want guest.State) {
		t.Helper()
		if o, err := session.RunScript(t.Context(), "20-install-features", mode, time.Minute); err != nil || o.State != want {
			t.Fatalf("%s: %+v, %v", mode, o, err)
		}
	}
	check(guest.Test, guest.Absent)
	check(guest.Set, guest.Absent)
	if err := session.Reboot(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	check(guest.Test, guest.Present)
	if text := transcript.String(); strings.Contains(text, access.Password) || !strings.Contains(text, "run 20-install-features set") {
		t.Errorf("the transcript:\n%s", text)
	}
}

// lockedBuilder is a strings.Builder for several goroutines.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// machine starts and stops the server on one address.
type machine struct {
	t      *testing.T
	server *winrmd.Server
	config *tls.Config
	resets atomic.Int32

	mu   sync.Mutex
	at   *net.TCPAddr
	end  context.CancelFunc
	done chan struct{}
}

func (m *machine) addr() netip.AddrPort {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.AddrPort()
}

func (m *machine) start(at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := net.Listen("tcp", at)
	if err != nil {
		m.t.Errorf("listening again: %v", err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.at, m.end, m.done = l.Addr().(*net.TCPAddr), cancel, make(chan struct{})
	done := m.done
	go func() {
		defer close(done)
		_ = m.server.Serve(ctx, l, m.config)
	}()
}

func (m *machine) stop() {
	m.mu.Lock()
	end, done := m.end, m.done
	m.mu.Unlock()
	end()
	<-done
}

func (m *machine) reboot() {
	time.Sleep(100 * time.Millisecond) // the answer comes through
	m.stop()
	time.Sleep(300 * time.Millisecond) // nobody listens
	m.start(m.addr().String())
	m.resets.Add(1)
}

// TestStrangerAfterReboot: whoever answers on the port with another certificate
// is not waited for.
func TestStrangerAfterReboot(t *testing.T) {
	config, pin := certificate(t)
	s := &winrmd.Server{Shell: shell(guesttest.Handle), Accounts: accounts, Basic: func() bool { return true }}
	pin[0] ^= 1
	_, err := guest.Open(t.Context(), guest.Options{Deadline: time.Minute, Dial: func(context.Context) (guest.Conn, error) {
		return winrm.Dial(winrm.Config{Addr: serve(t, s, config), User: user, Password: password, TLS: true, PinnedSHA256: pin})
	}})
	if !errors.Is(err, guest.ErrRefused) {
		t.Errorf("error %v, want ErrRefused", err)
	}
}
