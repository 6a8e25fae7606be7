// Package pshost talks to the one PowerShell process of a guest: requests go to
// its standard input, output and exit codes come from its standard output, one
// JSON object a line. README.md describes the protocol.
//
// It knows neither the agent nor what is run, and must not import them; what
// PowerShell asks of the agent goes through a function.
package pshost

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Request is something to run.
type Request struct {
	Kind    string   // "command", "file", "program" or "boot"
	User    string   // who runs it
	Text    string   // the script of a command, the path of a file
	Program string   // of a program
	Args    []string // of a file or a program
}

// Result is what a program called by PowerShell printed and returned.
type Result struct {
	Exit   int    `json:"exit"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Host is a running PowerShell. It is safe for concurrent use.
type Host struct {
	call  func(program string, args []string) Result
	ready chan struct{}
	ended chan struct{}

	writing sync.Mutex // guards to
	to      io.Writer

	mu      sync.Mutex // guards what follows
	last    int64
	running map[int64]*output
	err     error
}

// message is one line, in either direction.
type message struct {
	ID      int64    `json:"id,omitempty"`
	User    string   `json:"user,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Text    string   `json:"text,omitempty"`
	Program string   `json:"program,omitempty"`
	Args    []string `json:"args,omitempty"`
	Cancel  bool     `json:"cancel,omitempty"`
	Ready   bool     `json:"ready,omitempty"`
	Stream  string   `json:"stream,omitempty"`
	Data    string   `json:"data,omitempty"`
	Exit    *int     `json:"exit,omitempty"`
	Call    int64    `json:"call,omitempty"`
}

// New returns the host at the other end of from and to. call answers for
// programs; it may be called from several goroutines.
func New(from io.Reader, to io.Writer, call func(program string, args []string) Result) *Host {
	h := &Host{call: call, to: to, ready: make(chan struct{}), ended: make(chan struct{}), running: map[int64]*output{}}
	go h.read(from)
	return h
}

// Ready is closed once PowerShell is warm.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Run runs a request, waiting for PowerShell to be ready, and returns its exit
// code. When ctx ends the request is cancelled and its outcome not waited for.
// An error means that PowerShell is gone, or that ctx ended.
func (h *Host) Run(ctx context.Context, r Request, stdout, stderr io.Writer) (int, error) {
	select {
	case <-h.ready:
	case <-h.ended:
		return 1, h.fault()
	case <-ctx.Done():
		return 1, context.Cause(ctx)
	}
	select {
	case <-h.ended: // it was ready once
		return 1, h.fault()
	default:
	}
	out := newOutput()
	h.mu.Lock()
	h.last++
	id := h.last
	h.running[id] = out
	h.mu.Unlock()
	if err := h.send(message{ID: id, Kind: r.Kind, User: r.User, Text: r.Text, Program: r.Program, Args: r.Args}); err != nil {
		return 1, err
	}
	for {
		select {
		case <-out.more:
			done, exit, err := out.deliver(stdout, stderr)
			if done || err != nil {
				return exit, err
			}
		case <-h.ended:
			if done, exit, err := out.deliver(stdout, stderr); done {
				return exit, err
			}
			return 1, h.fault()
		case <-ctx.Done():
			h.forget(id)
			if err := h.send(message{ID: id, Cancel: true}); err != nil {
				return 1, err
			}
			return 1, context.Cause(ctx)
		}
	}
}

func (h *Host) forget(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, id)
}

func (h *Host) fault() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Errorf("PowerShell is gone: %w", h.err)
}

func (h *Host) send(m any) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if _, err := h.to.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("asking PowerShell: %w", err)
	}
	return nil
}

// read hands out what comes until PowerShell ends.
func (h *Host) read(from io.Reader) {
	r := bufio.NewReader(from)
	var err error
	for err == nil {
		var line []byte
		if line, err = r.ReadBytes('\n'); err == nil {
			err = h.handle(line)
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended")
	}
	h.mu.Lock()
	h.err = err
	h.mu.Unlock()
	close(h.ended)
}

func (h *Host) handle(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("reading %.200q: %w", line, err)
	}
	switch {
	case m.Ready:
		select {
		case <-h.ready:
		default:
			close(h.ready)
		}
	case m.Call != 0:
		// A program may take its time, and be asked for by several scripts.
		go func() {
			r := h.call(m.Program, m.Args)
			h.send(struct { //nolint:errcheck // if PowerShell is gone nobody waits
				Call int64 `json:"call"`
				Result
			}{m.Call, r})
		}()
	default:
		h.mu.Lock()
		out := h.running[m.ID]
		if m.Exit != nil {
			delete(h.running, m.ID)
		}
		h.mu.Unlock()
		if out != nil {
			out.add(m)
		}
	}
	return nil
}
