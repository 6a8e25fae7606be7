package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

// TestMain makes the test binary its own child: with childMode set it plays the
// program that a test asks for.
func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "":
		os.Exit(m.Run())
	case "print":
		fmt.Println(strings.Join(os.Args[1:], "|"))
	case "fail":
		fmt.Println("what it did")
		fmt.Fprintln(os.Stderr, "why it failed")
		os.Exit(3)
	case "fail-on-stdout":
		fmt.Println("what is wrong")
		os.Exit(1)
	case "flood":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 10*tailSize)+"the end")
		os.Exit(1)
	case "sleep":
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
	case "parent", "grandparent":
		mode := map[string]string{"parent": "sleep", "grandparent": "parent"}[os.Getenv(childMode)]
		c := child(mode)
		c.Stdout = os.Stdout // so that the child's pid comes out here
		fmt.Println(os.Getpid())
		p, err := Start(context.Background(), c)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		<-p.Done()
	}
}

const childMode = "WBOX_EXEC_TEST_CHILD"

func child(mode string, args ...string) Command {
	return Command{Program: os.Args[0], Args: args, Env: append(os.Environ(), childMode+"="+mode)}
}

func TestRunReturnsWhatWasPrinted(t *testing.T) {
	var copied bytes.Buffer
	c := child("print", "a b", "c")
	c.Stdout = &copied
	out, err := Run(t.Context(), c)
	if err != nil || strings.TrimSpace(string(out)) != "a b|c" || copied.String() != string(out) {
		t.Errorf("got %q, copy %q, %v", out, copied.String(), err)
	}
}

func TestErrorKeepsCodeAndLastOutput(t *testing.T) {
	for _, c := range []struct {
		mode   string
		code   int
		output string
	}{
		{"fail", 3, "why it failed\n"},
		{"fail-on-stdout", 1, "what is wrong\n"},
		{"flood", 1, strings.Repeat("x", tailSize-len("the end")) + "the end"},
	} {
		_, err := Run(t.Context(), child(c.mode, "it's", "-x=1"))
		var failed *Error
		if !errors.As(err, &failed) {
			t.Fatalf("%s: got %v, want an *Error", c.mode, err)
		}
		if failed.Code != c.code || failed.Output != c.output {
			t.Errorf("%s: code %d, output %.60q", c.mode, failed.Code, failed.Output)
		}
		if !strings.HasSuffix(failed.CommandLine(), ` 'it'\''s' -x=1`) {
			t.Errorf("%s: command line %s", c.mode, failed.CommandLine())
		}
		word := strings.TrimSpace(c.output)
		if n := strings.Count(err.Error(), word); n != 1 {
			t.Errorf("%s: the output is %d times in %q", c.mode, n, err)
		}
	}
}

func TestQuote(t *testing.T) {
	for want, argv := range map[string][]string{
		"qemu -m 512 a=b,c":      {"qemu", "-m", "512", "a=b,c"},
		`'' 'a b' '$x' 'a'\''b'`: {"", "a b", "$x", "a'b"},
		"'~' 'ü' 'a\nb'":         {"~", "ü", "a\nb"},
	} {
		if got := Quote(argv); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestMissingProgramNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for program, word := range map[string]string{
		"qemu-img":                            "qemu-utils",
		"qemu-system-x86_64":                  "ovmf",
		"no-such-program":                     "PATH",
		filepath.Join(t.TempDir(), "nowhere"): "path",
	} {
		_, err := Run(t.Context(), Command{Program: program})
		var p *fault.Problem
		if !errors.As(err, &p) || p.Class != fault.Host || p.Value != program || !strings.Contains(p.Fix, word) {
			t.Errorf("%s: got %v", program, err)
		}
	}
}

func TestContextEndsTheProgram(t *testing.T) {
	cause := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := Start(ctx, child("sleep"))
	if err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	wait(t, p)
	var failed *Error
	if !errors.As(p.Err(), &failed) || !errors.Is(p.Err(), cause) {
		t.Errorf("got %v, want an *Error with the cause", p.Err())
	}
	if _, err := Start(ctx, child("sleep")); !errors.Is(err, cause) {
		t.Errorf("starting under an ended context: got %v", err)
	}
}

func TestKill(t *testing.T) {
	p, err := Start(t.Context(), child("sleep"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}
	wait(t, p)
	if p.Err() != nil {
		t.Errorf("after Kill: %v", p.Err())
	}
}

func wait(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the program did not end")
	}
}

// pids reads n process ids, a line each, from what a child has printed so far.
func pids(t *testing.T, output func() string, n int) []int {
	t.Helper()
	var out []int
	eventually(t, func() bool {
		lines := strings.Fields(output())
		if len(lines) < n {
			return false
		}
		out = nil
		for _, l := range lines[:n] {
			pid, err := strconv.Atoi(l)
			if err != nil {
				t.Fatalf("not a process id: %q", output())
			}
			out = append(out, pid)
		}
		return true
	}, "the children's process ids")
	return out
}

func eventually(t *testing.T, cond func() bool, what string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
