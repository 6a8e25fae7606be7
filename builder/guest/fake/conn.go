// Package fake is a guest in memory for tests: connections without a network
// (Conn), and a small simulated Windows that has a boot time, scripts with a
// state, files, reboots and lost connections (Guest).
//
// It exists for tests only and must not import an implementation of guest.Conn.
package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
)

// Handler runs one command line in the guest, as a shell would. Its context ends
// when nobody is interested any more.
type Handler func(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) (exit int)

// Conn is a guest.Conn that calls a function.
type Conn struct {
	Handler Handler
	Refuse  bool            // the guest refuses the credentials
	Cut     <-chan struct{} // once closed, connections are broken
	Freeze  <-chan struct{} // once closed, the guest does not answer any more
	Timeout time.Duration   // after which a frozen guest is given up

	mu     sync.Mutex
	closed bool
}

var errLost = errors.New("connection reset by the fake guest")

// Run implements guest.Conn.
func (c *Conn) Run(ctx context.Context, cmd guest.Command) (int, error) {
	if n := len([]rune(cmd.Line)); n == 0 || n > 8000 {
		return 0, fmt.Errorf("a command line has 1 to 8000 characters, this one has %d", n)
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return 0, errors.New("the connection is closed")
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case isClosed(c.Cut):
		return 0, errors.New("connection refused by the fake guest")
	case c.Refuse:
		return 0, fmt.Errorf("wrong password: %w", guest.ErrRefused)
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	streams := &streams{stop: stop}
	defer streams.end()
	done := make(chan int, 1)
	go func() {
		done <- c.Handler(running, cmd.Line, &input{running, cmd.Stdin, stop}, streams.to(cmd.Stdout), streams.to(cmd.Stderr))
	}()
	var give <-chan time.Time
	freeze := c.Freeze
	for {
		select {
		case exit := <-done:
			if running.Err() != nil { // what it returned then is no outcome
				return 0, &guest.Unknown{Err: context.Cause(running)}
			}
			if freeze == nil && c.Freeze != nil {
				continue // nobody hears of it
			}
			return exit, nil
		case <-running.Done():
			return 0, &guest.Unknown{Err: context.Cause(running)}
		case <-c.Cut:
			return 0, &guest.Unknown{Err: errLost}
		case <-freeze:
			freeze = nil
			timer := time.NewTimer(c.Timeout)
			defer timer.Stop()
			give = timer.C
		case <-give:
			return 0, &guest.Unknown{Err: errors.New("the fake guest does not answer")}
		}
	}
}

// Close implements guest.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// streams passes output on until Run has returned.
type streams struct {
	mu    sync.Mutex
	ended bool
	stop  context.CancelCauseFunc
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *streams) to(w io.Writer) io.Writer { return &stream{s, w} }

type stream struct {
	s *streams
	w io.Writer
}

func (o *stream) Write(p []byte) (int, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if o.s.ended {
		return 0, io.ErrClosedPipe
	}
	if o.w == nil {
		return len(p), nil
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.s.stop(err)
	}
	return n, err
}

// input is a command's standard input. Without any it ends with the command.
type input struct {
	ctx  context.Context
	r    io.Reader
	stop context.CancelCauseFunc
}

func (i *input) Read(p []byte) (int, error) {
	if i.r == nil {
		<-i.ctx.Done()
		return 0, io.EOF
	}
	n, err := i.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		i.stop(err)
	}
	return n, err
}
