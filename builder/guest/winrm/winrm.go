// Package winrm is a guest.Conn over WinRM: messages as masterzen/winrm builds
// them, on an HTTP transport of our own. That transport heeds contexts, bounds
// every request, uses no proxy whatever the environment says, goes to one
// address only, and over HTTPS shows its credentials to no other certificate
// than the pinned one.
//
// The library's own client is not used: it takes a fault or a lost connection
// for exit code 0 in places, drops errors of standard input, and its transports
// know no context.
//
// The package must not import spec, stage, a stage or a hypervisor.
package winrm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
)

// Config says where a guest's WinRM is and how to log on.
type Config struct {
	// Addr is where the guest's WinRM is reached, normally a forwarded port on
	// loopback. Nothing else is ever dialled.
	Addr netip.AddrPort
	// User is a local account; DOMAIN\user is understood with NTLM.
	User string
	// Password is the account's password.
	Password guest.Secret
	// TLS chooses HTTPS with Basic authentication. Without it the connection is
	// HTTP with NTLM, and every message is encrypted with the log-on's key.
	TLS bool
	// PinnedSHA256 is the digest of the DER form of the only certificate that is
	// taken. Required with TLS; names and validity are not looked at.
	PinnedSHA256 [32]byte
	// OperationTimeout is how long the guest may hold a request while a command
	// is silent; 20 s where zero. It is no limit for commands.
	OperationTimeout time.Duration
	// Grace is how much longer than OperationTimeout an answer may take in all
	// before the guest counts as gone; 30 s where zero.
	Grace time.Duration
	// DialTimeout bounds connecting and the TLS handshake; 10 s where zero.
	DialTimeout time.Duration
}

func (c *Config) complete() error {
	if !c.Addr.IsValid() || c.Addr.Port() == 0 {
		return fmt.Errorf("a WinRM address is needed, have %q", c.Addr)
	}
	if c.User == "" || c.Password == "" {
		return errors.New("a user and a password are needed for WinRM")
	}
	if c.TLS && c.PinnedSHA256 == [32]byte{} {
		return errors.New("WinRM over HTTPS needs the digest of the guest's certificate")
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&c.OperationTimeout, 20 * time.Second}, {&c.Grace, 30 * time.Second}, {&c.DialTimeout, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
		if *d.value < 0 {
			return errors.New("WinRM timeouts can't be negative")
		}
	}
	return nil
}

// transport posts one message and returns the guest's answer, an envelope. A
// fault is a *Fault; anything else that went wrong is a *postError.
type transport interface {
	post(ctx context.Context, message []byte) ([]byte, error)
	close()
}

// postError is a request without an answer.
type postError struct {
	sent bool // the guest may have got the message
	err  error
}

func (e *postError) Error() string { return e.err.Error() }
func (e *postError) Unwrap() error { return e.err }

type conn struct {
	cfg       Config
	transport transport
	messages  messages

	mu     sync.Mutex
	closed bool
	tidy   sync.WaitGroup
}

// Dial returns a connection to the guest at cfg.Addr. It does not go to the
// network: whether anyone is there shows at the first command.
func Dial(cfg Config) (guest.Conn, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	c := &conn{cfg: cfg, messages: newMessages(cfg)}
	if cfg.TLS {
		c.transport = newPinned(cfg)
	} else {
		c.transport = newSealed(cfg)
	}
	return c, nil
}

// tidyTimeout bounds the clean-up of a shell, which nobody waits for longer.
const tidyTimeout = 5 * time.Second

// Close waits a moment for shells that are being cleaned up.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.tidy.Wait()
		close(done)
	}()
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	c.transport.close()
	return nil
}

// begin counts one Run in, so that Close knows of its clean-up.
func (c *conn) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("the WinRM connection is closed")
	}
	c.tidy.Add(1)
	return nil
}

// call posts a message within the time that one operation may take.
func (c *conn) call(ctx context.Context, message []byte) ([]byte, error) {
	limit := c.cfg.OperationTimeout + c.cfg.Grace
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	answer, err := c.transport.post(ctx, message)
	if err != nil && ctx.Err() != nil {
		var p *postError
		return nil, &postError{sent: !errors.As(err, &p) || p.sent, err: cause(ctx)}
	}
	return answer, err
}

// cause returns why ctx ended, in a form that errors.Is finds ctx.Err() in.
func cause(ctx context.Context) error {
	why, err := context.Cause(ctx), ctx.Err()
	if errors.Is(why, err) {
		return why
	}
	return fmt.Errorf("%w (%w)", why, err)
}
