// Package exec runs other programs as children that can't be left behind: they
// end with their context, with Kill, and with this process, however it dies.
// What a program said is kept in its error. It must not import anything of ours
// but fault.
package exec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// tailSize is how many bytes of a program's last output are kept.
const tailSize = 4 << 10

// Command is one program to run.
type Command struct {
	Program string   // a name that is looked up in PATH, or a path
	Args    []string // the arguments, without the program's own name
	Dir     string   // the working folder; empty for this process's own
	Env     []string // the environment as "name=value"; nil for this process's own
	Stdin   io.Reader
	Stdout  io.Writer // gets a copy of what the program prints, optional
	Stderr  io.Writer // gets a copy of what the program reports, optional
	// ExtraFiles become the child's descriptors 3, 4, ...; not on Windows.
	ExtraFiles []*os.File
}

// Error says how a program ended that did not end well.
type Error struct {
	Argv   []string // the program and its arguments
	Code   int      // the exit code; -1 if it was ended by a signal or never ran
	Output string   // the last 4 KiB of what it reported
	Err    error    // the cause: the context's, or the system's words
}

// Error names the program, its exit and its last words, on one line for each of
// those words. The arguments are left to CommandLine: they may be very long.
func (e *Error) Error() string {
	msg := programName(e.Argv) + ": " + e.Err.Error()
	if out := strings.TrimSpace(e.Output); out != "" {
		msg += ": " + out
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CommandLine returns the command as one would type it into a POSIX shell.
func (e *Error) CommandLine() string { return Quote(e.Argv) }

// Run runs a program to its end and returns all that it printed to standard
// output, whether it ended well or not. The error is an *Error, or a
// *fault.Problem of class Host where the program is missing.
func Run(ctx context.Context, c Command) (stdout []byte, err error) {
	var out bytes.Buffer
	also := c.Stdout
	c.Stdout = &out
	if also != nil {
		c.Stdout = io.MultiWriter(&out, also)
	}
	p, err := start(ctx, c, false)
	if err != nil {
		return nil, err
	}
	<-p.Done()
	err = p.Err()
	if failed, ok := err.(*Error); ok && failed.Output == "" { //nolint:errorlint // it is made in this package, bare
		// Some programs complain on standard output.
		failed.Output = string(out.Bytes()[max(0, out.Len()-tailSize):])
	}
	return out.Bytes(), err
}

// Quote joins argv to one line, with single quotes where a POSIX shell needs
// them.
func Quote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		if a != "" && strings.Trim(a, plain) == "" {
			quoted[i] = a
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// plain are the characters that mean nothing to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

func programName(argv []string) string {
	if len(argv) == 0 {
		return "no program"
	}
	return strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
}

func exitText(code int) error { return fmt.Errorf("exit code %d", code) }
