package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/wait"
)

// Options says how to reach a guest and what to do while waiting for it.
type Options struct {
	// Dial opens a connection. Required; it is called again after every loss.
	Dial func(ctx context.Context) (Conn, error)
	// Deadline bounds the wait of Open for the first contact. Required there.
	Deadline time.Duration
	// Interval lies between two looks of a wait; 5 s where zero.
	Interval time.Duration
	// Transcript receives every command with its output. Optional.
	Transcript io.Writer
	// Secrets are blotted out of the transcript, should a guest print them.
	Secrets []string
	// Liveness returns a number that grows while the machine does anything.
	// Optional; errors tell of it.
	Liveness func(context.Context) (uint64, error)
	// QuietLimit ends a wait once Liveness has not grown for so long; 0: never.
	QuietLimit time.Duration
	// Gone is closed once the machine is off: nothing is waited for any more.
	// Optional.
	Gone <-chan struct{}
	// Resets counts the machine's resets. Optional; where it is given, a reboot
	// must show there too, so that a clock that was set is not taken for one.
	Resets func() int
}

// The reasons why a session gives up before a deadline or at it.
var (
	ErrGone          = errors.New("the machine is off")
	ErrNeverRebooted = errors.New("the guest has not rebooted")
	ErrNotReady      = errors.New("the guest is up but not ready")
	ErrResetLoop     = errors.New("the machine is reset again and again")
	ErrLost          = errors.New("the guest was lost") // a command's connection broke or was never had
)

// Session is what a layer needs of one guest. It is safe for concurrent use,
// but scripts are meant to run one after the other.
type Session struct {
	o          Options
	transcript *transcript
	heard      heard

	mu   sync.Mutex
	conn Conn
}

// NewSession returns a session that has not been in contact with its guest yet.
func NewSession(o Options) *Session {
	return &Session{o: o, transcript: newTranscript(o.Transcript, o.Secrets)}
}

// Open waits for the first contact with a guest. Whoever refuses the
// credentials or shows another certificate is not the guest, and ends the wait.
func Open(ctx context.Context, o Options) (*Session, error) {
	s := NewSession(o)
	if err := s.WaitReachable(ctx, o.Deadline); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close lets go of the connection.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}

// connection returns the open connection, or a new one.
func (s *Session) connection(ctx context.Context) (Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		c, err := s.o.Dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("connecting to the guest: %w", err)
		}
		s.conn = c
	}
	return s.conn, nil
}

// drop closes c, which is of no use any more, so that the next command dials anew.
func (s *Session) drop(c Conn) {
	s.mu.Lock()
	if s.conn == c {
		s.conn = nil
	}
	s.mu.Unlock()
	_ = c.Close() // it is given up because it failed
}

// bound returns a context that also ends when the machine is off, and after
// limit, if it is positive.
func (s *Session) bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, off := context.WithCancelCause(ctx)
	cancel := func() { off(nil) }
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %v", limit))
		cancel = func() { stop(); off(nil) }
	}
	if s.o.Gone != nil {
		go func() {
			select {
			case <-s.o.Gone:
				off(ErrGone)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// printed is what a command said.
type printed struct {
	stdout []byte
	stderr string // decoded
	exit   int
}

// run runs one command line and writes it down as what. It keeps the last limit
// bytes of stdout.
func (s *Session) run(ctx context.Context, what, line string, limit int) (printed, error) {
	began := time.Now()
	out, errs := &tail{max: limit}, &tail{max: 1 << 20}
	var p printed
	c, err := s.connection(ctx)
	if err == nil {
		p.exit, err = c.Run(ctx, Command{Line: line, Stdout: s.heard.through(what, out), Stderr: s.heard.through(what, errs)})
		if err != nil {
			s.drop(c)
		} else {
			s.heard.note(what)
		}
	}
	p.stdout, p.stderr = out.buf, decodeCLIXML(errs.buf)
	s.transcript.record(began, what, string(p.stdout), p.stderr, p.exit, err)
	return p, err
}

// ask runs a bootstrap.
func (s *Session) ask(ctx context.Context, r request, script string, limit int) (printed, error) {
	line, err := powershell(script)
	if err != nil {
		return printed{}, err
	}
	return s.run(ctx, "# wbox: "+string(r), line, limit)
}

// RunScript runs one guest script and returns its outcome. A script that ran and
// failed is a *ScriptError, with the outcome beside it. One whose end was not
// seen within timeout, or before the machine stood still for QuietLimit, is an
// *Unknown with the *wait.Error; one whose connection broke, or was never had,
// wraps ErrLost.
func (s *Session) RunScript(ctx context.Context, name string, mode Mode, timeout time.Duration) (Outcome, error) {
	if !scriptName.MatchString(name) || (mode != Test && mode != Set) {
		return Outcome{}, fmt.Errorf("there is no guest script %q with mode %q", name, mode)
	}
	var p printed
	r, script := runRequest(name, mode)
	err := s.within(ctx, "its end", timeout, func(ctx context.Context) (err error) {
		p, err = s.ask(ctx, r, script, 8<<20)
		return err
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("running %s (%s): %w", name, mode, err)
	}
	o, err := parseOutcome(p.stdout, name, mode, p.exit)
	if err == nil && o.State == Failed {
		err = &ScriptError{o}
	} else if err != nil && strings.TrimSpace(p.stderr) != "" {
		err = fmt.Errorf("%w; it said: %.500s", err, strings.TrimSpace(p.stderr))
	}
	if err != nil {
		return o, fmt.Errorf("running %s (%s): %w", name, mode, err)
	}
	return o, nil
}

// within runs one command under a limit and says which way it was lost.
func (s *Session) within(ctx context.Context, what string, limit time.Duration, f func(context.Context) error) error {
	bounded, cancel := s.bound(ctx, 0)
	defer cancel()
	err := wait.Call(bounded, s.waitFor(what, limit), f)
	var late *wait.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case bounded.Err() != nil:
		return &Unknown{context.Cause(bounded)}
	case errors.As(err, &late):
		return &Unknown{err}
	case errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// BootTime returns when the guest was booted, by its own clock.
func (s *Session) BootTime(ctx context.Context) (time.Time, error) {
	bounded, cancel := s.bound(ctx, 0)
	defer cancel()
	r, script := bootTimeRequest()
	p, err := s.ask(bounded, r, script, 64<<10)
	if err = because(ctx, bounded, err); err != nil {
		return time.Time{}, fmt.Errorf("asking for the boot time: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, string(lastLine(p.stdout)))
	if err != nil || p.exit != 0 {
		return time.Time{}, fmt.Errorf("asking for the boot time: exit code %d, %.100q %.300s", p.exit, p.stdout, strings.TrimSpace(p.stderr))
	}
	return t, nil
}

// tryLimit bounds one look at a guest during a wait. Under emulation PowerShell
// takes its time to start.
const tryLimit = 2 * time.Minute

// WaitReachable waits until the guest answers a first question.
func (s *Session) WaitReachable(ctx context.Context, deadline time.Duration) error {
	return s.until(ctx, "the guest to answer", deadline, func(ctx context.Context) (bool, string, error) {
		boot, err := s.tryBootTime(ctx)
		if err != nil {
			return false, err.Error(), refusal(err)
		}
		return true, "it was booted at " + boot.Format(time.RFC3339), nil
	})
}

// readyScript says whether a guest has come to rest.
const readyScript = "00-test-ready"

// WaitReady waits until the guest says that it is up, quiet and has its services.
func (s *Session) WaitReady(ctx context.Context, deadline time.Duration) error {
	err := s.until(ctx, "the guest to be ready", deadline, func(ctx context.Context) (bool, string, error) {
		o, err := s.RunScript(ctx, readyScript, Test, tryLimit)
		if err != nil {
			return false, err.Error(), refusal(err)
		}
		return o.State == Present, o.Message, nil
	})
	if err != nil && !final(err) {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return err
}

func (s *Session) tryBootTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, fmt.Errorf("no answer within %v", tryLimit))
	defer cancel()
	return s.BootTime(ctx)
}

// refusal returns err where waiting can't help.
func refusal(err error) error {
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrGone) {
		return err
	}
	return nil
}

// final says that err is the whole story of a wait, whatever was waited for.
func final(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, ErrRefused) || errors.Is(err, ErrResetLoop) || errors.Is(err, context.Canceled)
}

// until waits with the session's liveness sign, and not for a machine that is
// off or is reset over and over.
func (s *Session) until(ctx context.Context, what string, deadline time.Duration, check wait.Check) error {
	bounded, cancel := s.bound(ctx, 0)
	defer cancel()
	loops := s.resetLoop()
	err := wait.Until(bounded, s.waitFor(what, deadline), func(ctx context.Context) (bool, string, error) {
		done, evidence, err := check(ctx)
		if !done && err == nil {
			err = loops()
		}
		return done, evidence, err
	})
	var e *wait.Error
	if errors.As(err, &e) && ctx.Err() == nil && bounded.Err() != nil {
		e.Err = context.Cause(bounded)
	}
	return err
}

func (s *Session) waitFor(what string, deadline time.Duration) wait.Options {
	return wait.Options{What: what, Deadline: deadline, Interval: s.o.Interval,
		Liveness: s.o.Liveness, LivenessName: "the machine", Stall: s.o.QuietLimit}
}
