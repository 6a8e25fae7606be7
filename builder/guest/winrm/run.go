package winrm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
)

// maxLine is the longest command line, in characters: cmd.exe takes 8,191.
const maxLine = 8000

// Run implements guest.Conn. Each command gets a shell of its own.
func (c *conn) Run(ctx context.Context, cmd guest.Command) (int, error) {
	if n := len([]rune(cmd.Line)); n == 0 || n > maxLine {
		return 0, fmt.Errorf("a command line has 1 to %d characters, this one has %d", maxLine, n)
	}
	if err := c.begin(); err != nil {
		return 0, err
	}
	var r remote
	r.conn = c
	tidy := func() { c.tidy.Done() }
	defer func() { tidy() }()

	answer, err := c.call(ctx, c.messages.create())
	if err != nil {
		return 0, fmt.Errorf("opening a shell in the guest: %w", plain(err))
	}
	if r.shell, err = parseID(answer, actionCreated, "ShellId"); err != nil {
		return 0, fmt.Errorf("opening a shell in the guest: %w", err)
	}
	// From here on there is something to clean up, which must not keep a caller
	// whose context has ended, or whose guest is gone, waiting.
	tidy = func() { go r.tidy(context.WithoutCancel(ctx)) }

	answer, err = c.call(ctx, c.messages.command(r.shell, cmd.Line, cmd.Stdin != nil))
	if err != nil {
		var p *postError
		if errors.As(err, &p) && p.sent && !errors.Is(err, guest.ErrRefused) {
			return 0, &guest.Unknown{Err: fmt.Errorf("starting the command: %w", err)}
		}
		return 0, fmt.Errorf("starting the command: %w", plain(err))
	}
	if r.command, err = parseID(answer, actionStarted, "CommandId"); err != nil {
		return 0, &guest.Unknown{Err: fmt.Errorf("starting the command: %w", err)}
	}
	exit, err := r.follow(ctx, cmd)
	if err != nil {
		return 0, &guest.Unknown{Err: err}
	}
	r.ended = true
	return exit, nil
}

// plain keeps a caller from taking an error of a command that was never started
// for anything else.
func plain(err error) error {
	var p *postError
	if errors.As(err, &p) {
		return p.err
	}
	return err
}

// remote is one shell with one command.
type remote struct {
	conn           *conn
	shell, command string
	ended          bool
}

// sendGrace is how long the end of a command may take after it took no more input.
const sendGrace = 5 * time.Second

// follow feeds the command and fetches its output until its exit code is seen.
func (r *remote) follow(ctx context.Context, cmd guest.Command) (int, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if cmd.Stdin != nil {
		go func() {
			if err := r.feed(ctx, cmd.Stdin, stop); err != nil {
				// A command may end without reading everything; then the output
				// says so soon.
				timer := time.AfterFunc(sendGrace, func() { stop(err) })
				defer timer.Stop()
				<-ctx.Done()
			}
		}()
	}
	for {
		answer, err := r.conn.call(ctx, r.conn.messages.receive(r.shell, r.command))
		var f *Fault
		switch {
		case errors.As(err, &f) && f.Timeout():
			if ctx.Err() != nil {
				return 0, cause(ctx)
			}
			continue
		case err != nil:
			return 0, fmt.Errorf("fetching the command's output: %w", err)
		}
		out, err := parseReceive(answer)
		if err != nil {
			return 0, fmt.Errorf("fetching the command's output: %w", err)
		}
		for _, s := range []struct {
			w    io.Writer
			data []byte
		}{{cmd.Stdout, out.stdout}, {cmd.Stderr, out.stderr}} {
			if s.w == nil || len(s.data) == 0 {
				continue
			}
			if _, err := s.w.Write(s.data); err != nil {
				return 0, fmt.Errorf("passing the command's output on: %w", err)
			}
		}
		if out.done {
			return out.exit, nil
		}
	}
}

// chunk is how much input one message carries: base64 makes it 87 kB, below
// the 150 kB that WinRM's oldest defaults allow.
const chunk = 64 << 10

// feed sends all of in and then its end. It calls stop where in fails.
func (r *remote) feed(ctx context.Context, in io.Reader, stop context.CancelCauseFunc) error {
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(in, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			stop(fmt.Errorf("reading the command's input: %w", err))
			return nil
		}
		answer, err := r.conn.call(ctx, r.conn.messages.send(r.shell, r.command, buf[:n], end))
		if err == nil {
			err = expect(answer, actionSent)
		}
		if err != nil {
			return fmt.Errorf("sending the command's input: %w", err)
		}
		if end {
			return nil
		}
	}
}

// tidy ends the command if it has not ended, and deletes the shell: a user may
// have 30 of them. It is as good as the guest lets it be.
func (r *remote) tidy(ctx context.Context) {
	defer r.conn.tidy.Done()
	ctx, cancel := context.WithTimeout(ctx, tidyTimeout)
	defer cancel()
	if r.command != "" && !r.ended {
		_, _ = r.conn.call(ctx, r.conn.messages.terminate(r.shell, r.command))
	}
	_, _ = r.conn.call(ctx, r.conn.messages.remove(r.shell))
}
