package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	osexec "os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

// pipeDelay is how long a program's pipes may stay open after its end: a
// grandchild that holds them must not keep us waiting.
const pipeDelay = 2 * time.Second

// killTimeout is how long Kill waits for the program to be gone.
const killTimeout = 10 * time.Second

// Process is a running program.
type Process struct {
	cmd    *osexec.Cmd
	group  group
	tail   tail
	killed atomic.Bool
	done   chan struct{}
	err    error // valid once done is closed
}

// Start starts a program. It runs until it ends, is killed, this process dies
// or ctx ends, which kills it and all of its own children.
func Start(ctx context.Context, c Command) (*Process, error) {
	return start(ctx, c, true)
}

// start starts c; what it prints goes to the tail as well if keepStdout is set.
func start(ctx context.Context, c Command, keepStdout bool) (*Process, error) {
	path, err := Look(c.Program)
	if err != nil {
		return nil, err
	}
	p := &Process{done: make(chan struct{})}
	p.cmd = osexec.CommandContext(ctx, path, c.Args...)
	p.cmd.Args[0] = c.Program
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdin, p.cmd.ExtraFiles = c.Dir, c.Env, c.Stdin, c.ExtraFiles
	p.cmd.Stdout = c.Stdout
	if keepStdout {
		p.cmd.Stdout = tee(&p.tail, c.Stdout)
	}
	p.cmd.Stderr = tee(&p.tail, c.Stderr)
	p.cmd.WaitDelay = pipeDelay
	p.cmd.Cancel = func() error { return p.group.kill(p.cmd.Process) }

	started := make(chan error, 1)
	go p.run(ctx, started)
	if err := <-started; err != nil {
		return nil, &Error{Argv: p.cmd.Args, Code: -1, Err: err}
	}
	return p, nil
}

func tee(t *tail, also io.Writer) io.Writer {
	if also == nil {
		return t
	}
	return io.MultiWriter(t, also)
}

// run starts the program and waits for its end. It keeps its thread for all of
// that time: Linux sends the parent-death signal when the thread that started
// the child ends, not only when the process does (golang.org/issue/27505).
func (p *Process) run(ctx context.Context, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.group.prepare(p.cmd); err != nil {
		started <- err
		return
	}
	defer p.group.close()
	if err := p.cmd.Start(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		started <- err
		return
	}
	if err := p.group.adopt(p.cmd.Process); err != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		started <- fmt.Errorf("binding the child to this process: %w", err)
		return
	}
	started <- nil
	err := p.cmd.Wait()
	// What the program has left behind in its group goes with it.
	p.group.kill(p.cmd.Process)
	p.err = p.verdict(ctx, err)
	close(p.done)
}

// verdict makes of Wait's error the error of the process.
func (p *Process) verdict(ctx context.Context, err error) error {
	code := p.cmd.ProcessState.ExitCode()
	switch {
	case p.killed.Load():
		return nil
	case err == nil, errors.Is(err, osexec.ErrWaitDelay):
		return nil
	case code >= 0 && ctx.Err() == nil:
		err = exitText(code)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return &Error{Argv: p.cmd.Args, Code: code, Output: p.tail.String(), Err: err}
}

// Done is closed once the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says, after Done, how the program ended: nil after exit code 0 or Kill,
// an *Error otherwise. If the context ended it, the *Error wraps its cause.
func (p *Process) Err() error { return p.err }

// ExitCode returns, after Done, the exit code; -1 if a signal ended the program.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output returns the last 4 KiB of what the program has printed and reported.
func (p *Process) Output() string { return p.tail.String() }

// Kill ends the program and its children at once and waits until it is gone.
// It is idempotent.
func (p *Process) Kill() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	p.killed.Store(true)
	if err := p.group.kill(p.cmd.Process); err != nil {
		return fmt.Errorf("killing %s (process %d): %w", programName(p.cmd.Args), p.Pid(), err)
	}
	limit := time.NewTimer(killTimeout)
	defer limit.Stop()
	select {
	case <-p.done:
		return nil
	case <-limit.C:
		return fmt.Errorf("killing %s: process %d is still there after %v", programName(p.cmd.Args), p.Pid(), killTimeout)
	}
}
