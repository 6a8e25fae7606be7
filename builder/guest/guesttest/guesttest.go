// Package guesttest holds what every guest.Conn must do, as one suite of tests.
// An implementation's test calls Run with a function that makes a connection to
// a guest with the wanted behaviour.
//
// It exists for tests only and must not import an implementation.
package guesttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
)

// Handler is what the guest does with a command line; see Handle.
type Handler func(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) (exit int)

// Behaviour describes the guest at the other end of a connection.
type Behaviour struct {
	// Handler runs the commands.
	Handler Handler
	// WrongPassword asks for a connection whose password the guest refuses.
	WrongPassword bool
	// Cut, once closed, breaks all connections hard, as a dying guest's kernel does.
	Cut <-chan struct{}
	// Freeze, once closed, makes the guest go without a word: connections stay
	// open, nothing is answered any more.
	Freeze <-chan struct{}
	// Bound is the time within which the connection must have noticed a frozen
	// guest; implementations set their timeouts accordingly.
	Bound time.Duration
}

// bound is generous for machines under load; a Conn may be faster.
const bound = 3 * time.Second

// slack is added to every limit that a test measures.
const slack = 10 * time.Second

// Run runs the suite. newConn makes a connection that is closed by the test's Cleanup.
func Run(t *testing.T, newConn func(t *testing.T, b Behaviour) guest.Conn) {
	tests := []struct {
		name string
		run  func(t *testing.T, newConn func(t *testing.T, b Behaviour) guest.Conn)
	}{
		{"exit codes", exitCodes},
		{"output and input", inputOutput},
		{"streams while it runs", streams},
		{"line length", lineLength},
		{"cancel", cancels},
		{"lost connection", lost},
		{"frozen guest", frozen},
		{"wrong password", wrongPassword},
		{"failing writer", failingWriter},
		{"failing input", failingInput},
		{"input not wanted", inputNotWanted},
		{"at once", atOnce},
		{"closed", closed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, newConn)
		})
	}
}

type makeConn = func(t *testing.T, b Behaviour) guest.Conn

// Handle is a Handler with a few verbs:
//
//	exit N      prints nothing and ends with N
//	echo TEXT   prints TEXT
//	both TEXT   prints TEXT to both streams, ends with 7
//	cat         copies its input
//	flood N     prints N times 16 bytes
//	hang        waits until it is ended
func Handle(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) int {
	verb, rest, _ := strings.Cut(line, " ")
	n := 0
	_, _ = fmt.Sscan(rest, &n)
	switch verb {
	case "exit":
		return n
	case "echo":
		fmt.Fprint(stdout, rest)
	case "both":
		fmt.Fprint(stdout, rest)
		fmt.Fprint(stderr, rest)
		return 7
	case "cat":
		_, _ = io.Copy(stdout, stdin)
	case "flood":
		for range n {
			_, _ = stdout.Write([]byte("0123456789abcde\n"))
		}
	case "hang":
		<-ctx.Done()
		return 99
	default:
		return 9009 // what cmd.exe says of an unknown program
	}
	return 0
}

type result struct {
	exit           int
	err            error
	stdout, stderr string
}

func run(ctx context.Context, c guest.Conn, line string, stdin io.Reader) result {
	var stdout, stderr bytes.Buffer
	exit, err := c.Run(ctx, guest.Command{Line: line, Stdin: stdin, Stdout: &stdout, Stderr: &stderr})
	return result{exit, err, stdout.String(), stderr.String()}
}

// checkUnknown fails unless err says that the outcome is not known, and that
// ran within limit.
func checkUnknown(t *testing.T, r result, began time.Time, limit time.Duration) {
	t.Helper()
	var u *guest.Unknown
	if !errors.As(r.err, &u) {
		t.Errorf("exit %d, error %v, want *guest.Unknown", r.exit, r.err)
	}
	if d := time.Since(began); d > limit+slack {
		t.Errorf("it took %v to notice, want at most %v", d, limit)
	}
}

func exitCodes(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	for _, want := range []int{0, 1, 255, 3010, -1, -1073741510} {
		if r := run(t.Context(), c, fmt.Sprintf("exit %d", want), nil); r.err != nil || r.exit != want {
			t.Errorf("exit %d: got %d, %v", want, r.exit, r.err)
		}
	}
	// Nobody has to take the output.
	if exit, err := c.Run(t.Context(), guest.Command{Line: "both x"}); exit != 7 || err != nil {
		t.Errorf("without writers: exit %d, %v", exit, err)
	}
}

func inputOutput(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	every := make([]byte, 70000)
	for i := range every {
		every[i] = byte(i)
	}
	for name, w := range map[string]struct{ line, stdin, stdout, stderr string }{
		"text":              {"echo hello", "", "hello", ""},
		"both streams":      {"both x", "", "x", "x"},
		"unicode and XML":   {`echo Grüße, 世界 <&> "quoted" ]]> 'single' %PATH% 🙂`, "", `Grüße, 世界 <&> "quoted" ]]> 'single' %PATH% 🙂`, ""},
		"large output":      {"flood 65536", "", strings.Repeat("0123456789abcde\n", 65536), ""},
		"bytes round trip":  {"cat", string(every), string(every), ""},
		"large input":       {"cat", strings.Repeat("0123456789abcde\n", 40000), strings.Repeat("0123456789abcde\n", 40000), ""},
		"empty input ends":  {"cat", "", "", ""},
		"line ends survive": {"cat", "a\r\nb\nc\r\x1a\x00d", "a\r\nb\nc\r\x1a\x00d", ""},
	} {
		r := run(t.Context(), c, w.line, strings.NewReader(w.stdin))
		if r.err != nil || r.stdout != w.stdout || r.stderr != w.stderr {
			t.Errorf("%s: error %v, stdout %.80q (%d bytes, want %d), stderr %.80q", name, r.err, r.stdout, len(r.stdout), len(w.stdout), r.stderr)
		}
	}
}

// signalWriter closes seen at the first byte.
type signalWriter struct {
	seen chan struct{}
	once sync.Once
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(p), nil
}

func streams(t *testing.T, newConn makeConn) {
	more := make(chan struct{})
	c := newConn(t, Behaviour{Handler: func(ctx context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
		fmt.Fprint(stdout, "begun")
		select {
		case <-more: // only once the first output was seen at the other end
			return 4
		case <-ctx.Done():
			return 1
		}
	}})
	w := &signalWriter{seen: make(chan struct{})}
	go func() {
		<-w.seen
		close(more)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), slack)
	defer cancel()
	if exit, err := c.Run(ctx, guest.Command{Line: "any", Stdout: w}); exit != 4 || err != nil {
		t.Errorf("exit %d, %v", exit, err)
	}
}

func lineLength(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	longest := "echo " + strings.Repeat("x", 7995)
	if r := run(t.Context(), c, longest, nil); r.err != nil || len(r.stdout) != 7995 {
		t.Errorf("8,000 characters: %v, %d bytes", r.err, len(r.stdout))
	}
	for _, line := range []string{"", longest + "x"} {
		r := run(t.Context(), c, line, nil)
		var u *guest.Unknown
		if r.err == nil || errors.As(r.err, &u) {
			t.Errorf("a line of %d characters: error %v, want one that says it was not started", len(line), r.err)
		}
	}
}

func cancels(t *testing.T, newConn makeConn) {
	ended := make(chan struct{})
	c := newConn(t, Behaviour{Handler: func(ctx context.Context, line string, in io.Reader, out, errs io.Writer) int {
		fmt.Fprint(out, "begun")
		<-ctx.Done()
		close(ended)
		return 0 // must not be taken for the outcome
	}})
	ctx, cancel := context.WithCancel(t.Context())
	w := &signalWriter{seen: make(chan struct{})}
	var began time.Time
	go func() {
		<-w.seen
		time.Sleep(50 * time.Millisecond) // into the next wait for output
		began = time.Now()
		cancel()
	}()
	exit, err := c.Run(ctx, guest.Command{Line: "any", Stdout: w})
	checkUnknown(t, result{exit: exit, err: err}, began, 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error %v does not tell of the cancelled context", err)
	}
	select {
	case <-ended:
	case <-time.After(slack):
		t.Error("the command in the guest was not ended")
	}
	// A context that has ended before starts nothing, and the connection is
	// still good for others.
	if r := run(ctx, c, "any", nil); r.err == nil {
		t.Error("a command ran under a cancelled context")
	}
}

func lost(t *testing.T, newConn makeConn) {
	cut := make(chan struct{})
	c := newConn(t, Behaviour{Handler: func(ctx context.Context, _ string, _ io.Reader, out, _ io.Writer) int {
		fmt.Fprint(out, "begun")
		<-ctx.Done()
		return 0
	}, Cut: cut, Bound: bound})
	w := &signalWriter{seen: make(chan struct{})}
	go func() {
		<-w.seen
		close(cut)
	}()
	began := time.Now()
	exit, err := c.Run(t.Context(), guest.Command{Line: "any", Stdout: w})
	checkUnknown(t, result{exit: exit, err: err}, began, bound)
}

func frozen(t *testing.T, newConn makeConn) {
	freeze := make(chan struct{})
	c := newConn(t, Behaviour{Handler: func(ctx context.Context, _ string, _ io.Reader, out, _ io.Writer) int {
		fmt.Fprint(out, "begun")
		<-ctx.Done()
		return 0
	}, Freeze: freeze, Bound: bound})
	w := &signalWriter{seen: make(chan struct{})}
	go func() {
		<-w.seen
		close(freeze)
	}()
	began := time.Now()
	exit, err := c.Run(t.Context(), guest.Command{Line: "any", Stdout: w})
	checkUnknown(t, result{exit: exit, err: err}, began, bound)
}

func wrongPassword(t *testing.T, newConn makeConn) {
	var ran sync.Once
	started := false
	c := newConn(t, Behaviour{WrongPassword: true, Handler: func(context.Context, string, io.Reader, io.Writer, io.Writer) int {
		ran.Do(func() { started = true })
		return 0
	}})
	r := run(t.Context(), c, "any", nil)
	var u *guest.Unknown
	if !errors.Is(r.err, guest.ErrRefused) || errors.As(r.err, &u) {
		t.Errorf("error %v, want ErrRefused and not Unknown", r.err)
	}
	if started {
		t.Error("the command ran")
	}
}

// fails is a reader and writer that does not work.
type fails struct{}

var errBroken = errors.New("broken on this side")

func (fails) Write([]byte) (int, error) { return 0, errBroken }
func (fails) Read([]byte) (int, error)  { return 0, errBroken }

func failingWriter(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	exit, err := c.Run(t.Context(), guest.Command{Line: "echo x", Stdout: fails{}})
	checkUnknown(t, result{exit: exit, err: err}, time.Now(), 0)
	if !errors.Is(err, errBroken) {
		t.Errorf("the error %v does not say why", err)
	}
}

func failingInput(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	began := time.Now()
	r := run(t.Context(), c, "cat", fails{})
	checkUnknown(t, r, began, 0)
	if !errors.Is(r.err, errBroken) {
		t.Errorf("the error %v does not say why", r.err)
	}
}

// inputNotWanted: a command that ends without reading its input has still ended.
func inputNotWanted(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	if r := run(t.Context(), c, "exit 5", strings.NewReader(strings.Repeat("x", 1<<20))); r.err != nil || r.exit != 5 {
		t.Errorf("exit %d, %v", r.exit, r.err)
	}
}

func atOnce(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 3 {
				text := strings.Repeat(fmt.Sprintf("%d-%d ", i, j), 5000)
				if r := run(t.Context(), c, "cat", strings.NewReader(text)); r.err != nil || r.stdout != text {
					t.Errorf("%d-%d: %v, %d bytes, want %d", i, j, r.err, len(r.stdout), len(text))
				}
			}
		})
	}
	wg.Wait()
}

func closed(t *testing.T, newConn makeConn) {
	c := newConn(t, Behaviour{Handler: Handle})
	if r := run(t.Context(), c, "echo x", nil); r.err != nil {
		t.Fatal(r.err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if r := run(t.Context(), c, "echo x", nil); r.err == nil {
		t.Error("a command ran over a closed connection")
	}
}
