package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// maxMessage bounds one message from QEMU; the longest that we ask for, the
// statistics of six drives, is some 20 KB.
const maxMessage = 4 << 20

// errHangup is the error of commands to a QEMU that has closed its monitor.
var errHangup = errors.New("QEMU has closed its monitor")

// message is whatever QEMU may send: a greeting, an event, an answer or an
// error, told apart by which field is there.
type message struct {
	Greeting json.RawMessage `json:"QMP"`
	Event    string          `json:"event"`
	Data     json.RawMessage `json:"data"`
	ID       *int64          `json:"id"`
	Return   json.RawMessage `json:"return"`
	Error    *qmpError       `json:"error"`
}

// qmpError is QEMU's refusal of a command.
type qmpError struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func (e *qmpError) Error() string { return e.Desc }

// parseMessage decodes one line that QEMU has sent.
func parseMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("reading QEMU's monitor: %w", err)
	}
	if m.Greeting == nil && m.Event == "" && m.Return == nil && m.Error == nil {
		return message{}, fmt.Errorf("reading QEMU's monitor: a message of no known kind: %.80q", line)
	}
	return m, nil
}

// monitor is our end of QEMU's machine protocol (QMP). It is safe for
// concurrent use.
type monitor struct {
	conn    net.Conn
	onEvent func(name string, data json.RawMessage) // called by the reader: it must not wait for an answer
	greeted chan struct{}
	closed  chan struct{} // closed when the reader has read all there is

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan message
	err     error // valid once closed is closed
}

// newMonitor reads from conn from now on, and owns it.
func newMonitor(conn net.Conn, onEvent func(string, json.RawMessage)) *monitor {
	m := &monitor{
		conn: conn, onEvent: onEvent,
		greeted: make(chan struct{}), closed: make(chan struct{}),
		waiting: make(map[int64]chan message),
	}
	go m.read()
	return m
}

func (m *monitor) read() {
	defer close(m.closed)
	defer m.conn.Close()
	lines := bufio.NewScanner(m.conn)
	lines.Buffer(nil, maxMessage)
	greeted := false
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		msg, err := parseMessage(lines.Bytes())
		switch {
		case err != nil:
			m.err = err
			return
		case msg.Greeting != nil:
			if !greeted {
				greeted = true
				close(m.greeted)
			}
		case msg.Event != "":
			m.onEvent(msg.Event, msg.Data)
		default:
			m.deliver(msg)
		}
	}
	m.err = errHangup
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		m.err = fmt.Errorf("reading QEMU's monitor: a message longer than %d bytes", maxMessage)
	}
}

func (m *monitor) deliver(msg message) {
	if msg.ID == nil {
		return // the answer to something that was not understood: not ours
	}
	m.mu.Lock()
	answer := m.waiting[*msg.ID]
	delete(m.waiting, *msg.ID)
	m.mu.Unlock()
	if answer != nil {
		answer <- msg
	}
}

// open waits for QEMU's greeting and takes the monitor into use.
func (m *monitor) open(ctx context.Context) error {
	select {
	case <-m.greeted:
	case <-m.closed:
		return m.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for QEMU's monitor: %w", context.Cause(ctx))
	}
	return m.execute(ctx, "qmp_capabilities", nil, nil)
}

// execute runs a command and decodes what it returns into result, if that is
// not nil. A refusal is a *qmpError.
func (m *monitor) execute(ctx context.Context, command string, args map[string]any, result any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("asking QEMU for %s: %w", command, err)
		}
	}()
	answer, id, err := m.send(ctx, command, args)
	if err != nil {
		return err
	}
	defer m.forget(id)
	var msg message
	select {
	case msg = <-answer:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.closed:
		select {
		case msg = <-answer: // it was the last thing QEMU said
		default:
			return m.err
		}
	}
	switch {
	case msg.Error != nil:
		return msg.Error
	case result == nil:
		return nil
	}
	return json.Unmarshal(msg.Return, result)
}

func (m *monitor) send(ctx context.Context, command string, args map[string]any) (chan message, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	request := map[string]any{"execute": command, "id": m.last}
	if len(args) > 0 {
		request["arguments"] = args
	}
	line, err := json.Marshal(request)
	if err != nil {
		return nil, 0, err
	}
	answer := make(chan message, 1)
	m.waiting[m.last] = answer
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(10 * time.Second) // a line fits the socket's buffer unless QEMU hangs
	}
	m.conn.SetWriteDeadline(deadline)
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		delete(m.waiting, m.last)
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			err = errHangup
		case ok: // the socket's clock may be a moment ahead of the context's
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		return nil, 0, err
	}
	return answer, m.last, nil
}

func (m *monitor) forget(id int64) {
	m.mu.Lock()
	delete(m.waiting, id)
	m.mu.Unlock()
}

// close hangs up.
func (m *monitor) close() {
	m.conn.Close()
	<-m.closed
}
