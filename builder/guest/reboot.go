package guest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Command lines that end a guest's session: in five seconds, so that the answer
// still comes through, by force, and as planned (major 4, minor 1).
const (
	rebootLine   = "shutdown.exe /r /t 5 /f /d p:4:1"
	shutdownLine = "shutdown.exe /s /t 5 /f /d p:4:1"
)

// Exit codes of shutdown.exe that mean that the guest is going down already
// (ERROR_SHUTDOWN_IN_PROGRESS and ERROR_SHUTDOWN_IS_SCHEDULED of winerror.h).
const (
	shutdownInProgress = 1115
	shutdownScheduled  = 1190
)

// AskAgain is when a guest that goes on as if nothing had been said is asked
// once more to go down. One that is about to says so and does nothing else.
const AskAgain = 2 * time.Minute

// sameBoot is how far two answers about one boot may lie apart: Windows computes
// the time of its boot, and no boot is as short.
const sameBoot = 2 * time.Second

// Reboot reboots the guest and proves it: another boot time over a new
// connection, and then a guest that says it is ready, all within deadline.
// Connections that break meanwhile are nothing special. The error wraps
// ErrNeverRebooted or ErrNotReady, says what was seen last, or is that of a
// refusal, which ends the wait at once.
func (s *Session) Reboot(ctx context.Context, deadline time.Duration) error {
	began := time.Now()
	before, err := s.firstBootTime(ctx, deadline)
	if err != nil {
		return err
	}
	resets := 0
	if s.o.Resets != nil {
		resets = s.o.Resets()
	}
	if err := s.goDown(ctx, rebootLine); err != nil {
		return err
	}
	asked := time.Now()
	err = s.until(ctx, "the guest's reboot", max(deadline-time.Since(began), s.o.Interval), func(ctx context.Context) (bool, string, error) {
		s.redial()
		now, err := s.tryBootTime(ctx)
		switch {
		case err != nil:
			return false, err.Error(), refusal(err)
		case now.Sub(before).Abs() < sameBoot:
			if time.Since(asked) > AskAgain { // the request may have been lost
				asked = time.Now()
				s.goDown(ctx, rebootLine) //nolint:errcheck // what happens next is what counts
			}
			return false, "it still runs since its boot at " + now.Format(time.RFC3339), nil
		case s.o.Resets != nil && s.o.Resets() == resets:
			return false, "its boot time became " + now.Format(time.RFC3339) + ", but the machine was not reset", nil
		}
		return true, "", nil
	})
	if err != nil {
		if final(err) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrNeverRebooted, err)
	}
	return s.WaitReady(ctx, max(deadline-time.Since(began), s.o.Interval))
}

// firstBootTime asks for the boot time until there is an answer: a connection
// that breaks over it is nothing special either.
func (s *Session) firstBootTime(ctx context.Context, deadline time.Duration) (boot time.Time, err error) {
	err = s.until(ctx, "the guest's boot time", deadline, func(ctx context.Context) (bool, string, error) {
		var err error
		if boot, err = s.tryBootTime(ctx); err != nil {
			return false, err.Error(), refusal(err)
		}
		return true, "", nil
	})
	return boot, err
}

// Shutdown asks the guest to shut down. Whether it does, the machine tells.
func (s *Session) Shutdown(ctx context.Context) error { return s.goDown(ctx, shutdownLine) }

// goDown runs shutdown.exe. A connection that is lost over it is as good as an
// answer: what happens next is what counts. One that is not had is tried again.
func (s *Session) goDown(ctx context.Context, line string) error {
	err := s.until(ctx, "an answer of shutdown.exe", tryLimit, func(limited context.Context) (bool, string, error) {
		p, err := s.run(limited, line, line, 64<<10)
		var u *Unknown
		switch {
		case errors.As(err, &u):
			return true, "", nil
		case err != nil:
			return false, err.Error(), refusal(err)
		case p.exit != 0 && p.exit != shutdownInProgress && p.exit != shutdownScheduled:
			return false, "", fmt.Errorf("shutdown.exe refuses: exit code %d, %.300s%.300s", p.exit, p.stdout, p.stderr)
		}
		return true, "", nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("running shutdown.exe: %w", context.Cause(ctx))
	}
	return err
}

// redial makes the next command use a new connection.
func (s *Session) redial() {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		s.drop(c)
	}
}
