package gosource

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// Command is one call of an external program.
type Command struct {
	Argv []string
	Dir  string
	Env  []string
	Line func(line string) // gets every line of standard error as it comes; may be nil
}

// Run executes c and returns its standard output, whether it ended well or
// not. A failure is an *exec.Error; after the context ended it wraps the
// context's error.
func (c Command) Run(ctx context.Context) ([]byte, error) {
	lines := &lineWriter{line: c.Line}
	out, err := exec.Run(ctx, exec.Command{Program: c.Argv[0], Args: c.Argv[1:], Dir: c.Dir, Env: c.Env, Stderr: lines})
	lines.flush()
	return out, err
}

// lineWriter passes what is written to it on, line by line, without the ends
// of lines and without empty ones.
type lineWriter struct {
	line func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.pass(w.rest[:i])
		w.rest = w.rest[i+1:]
	}
}

func (w *lineWriter) flush() {
	w.pass(w.rest)
	w.rest = nil
}

func (w *lineWriter) pass(line []byte) {
	if text := strings.TrimRight(string(line), "\r"); text != "" && w.line != nil {
		w.line(text)
	}
}

// OutputOf returns the last words of a failed program.
func OutputOf(err error) string {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Output
	}
	return ""
}

// FirstLine returns the first line of a text, without blanks around the text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
