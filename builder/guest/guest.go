// Package guest talks to the operating system inside a machine: it runs
// commands and our guest scripts, reboots and proves it, and collects logs.
//
// A Conn is one way in (WinRM; a fake in tests). Session builds on it what
// every layer needs. The package must not import spec, stage or a stage.
package guest

import (
	"context"
	"errors"
	"io"
)

// Conn runs commands in one guest. Implementations are safe for concurrent
// use and pass the conformance suite in guesttest.
type Conn interface {
	// Run runs a command line as the guest's shell (cmd.exe) would, streams
	// what it prints and returns its exit code.
	//
	// Where the command's end was not seen (the connection was lost, the
	// guest went away, ctx ended) the error is an *Unknown, whatever the
	// guest may have done: a lost connection is never exit code 0. Where the
	// command was never started, the error is any other error.
	Run(ctx context.Context, cmd Command) (exitCode int, err error)
	// Close lets go of the connection. It does not touch the guest.
	Close() error
}

// Command is one command line for a guest.
type Command struct {
	Line   string    // the command line, at most 8,000 characters
	Stdin  io.Reader // optional; read to its end before the command may end
	Stdout io.Writer // optional
	Stderr io.Writer // optional
}

// Unknown says that a command was started, or may have been, and that its
// outcome is not known.
type Unknown struct {
	Err error
}

func (u *Unknown) Error() string { return "outcome unknown: " + u.Err.Error() }

// Unwrap returns what broke the connection.
func (u *Unknown) Unwrap() error { return u.Err }

// ErrRefused is wrapped by the error of a Conn whose credentials the guest
// refuses or whose certificate is not the pinned one: waiting won't help.
var ErrRefused = errors.New("refused")
