//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childArgs is set where this test binary plays wbox itself, main included.
const childArgs = "WBOX_TEST_MAIN_ARGS"

func TestMainAsAChild(t *testing.T) {
	args, ok := os.LookupEnv(childArgs)
	if !ok {
		t.Skip("runs as the child of the next test")
	}
	os.Args = append([]string{"wbox"}, strings.Fields(args)...)
	main()
}

// Who reads what wbox says may go away first: the exit code is still wbox's.
func TestAClosedPipeEndsNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainAsAChild$")
	cmd.Env = append(os.Environ(), childArgs+"=build extra argument")
	cmd.Stderr = w
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("got %v, want exit code 2", err)
	}
}
