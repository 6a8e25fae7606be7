package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/builder/report"
)

// actor is the environment variable that makes this test binary a program that
// shows a scripted build on its standard error; its value says which.
const actor = "WBOX_UI_TEST_ACTOR"

func TestMain(m *testing.M) {
	if how := os.Getenv(actor); how != "" {
		act(how)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// act plays a build. The result goes to standard output.
func act(how string) {
	d, err := New(Options{Err: os.Stderr, Getenv: os.Getenv, Color: Color(os.Getenv("COLOR"))})
	if err != nil {
		panic(err)
	}
	d.Say("baking")
	d.Emit(report.Event{Kind: report.StageHit, Stage: "windows", Message: "installing Windows"})
	d.Emit(report.Event{Kind: report.StageStarted, Stage: "kube", Message: "compiling"})
	d.Emit(report.Event{Kind: report.StageStarted, Stage: "node", Message: "preparing the node", Expected: time.Minute})
	for i := range int64(1000) {
		d.Emit(report.Event{Kind: report.StageProgress, Stage: "kube", Message: "compiling", Done: i, Total: 1000})
	}
	d.Emit(report.Event{Kind: report.StageProgress, Stage: "node", Message: "rebooting"})
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until the test says go on
	d.Emit(report.Event{Kind: report.StageDone, Stage: "kube", Message: "compiling", Elapsed: 2 * time.Second})
	switch how {
	case "succeed":
		d.Emit(report.Event{Kind: report.StageDone, Stage: "node", Message: "preparing the node", Elapsed: 3 * time.Second})
		fmt.Println("result")
	case "fail":
		d.Emit(report.Event{Kind: report.StageFailed, Stage: "node", Message: "preparing the node: no", Elapsed: 3 * time.Second})
	}
	d.Close()
	if how != "succeed" {
		PrintError(os.Stderr, errors.New("it broke"))
	}
}

// openPTY returns both ends of a new pseudo-terminal of that size.
func openPTY(t *testing.T, columns, rows uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	ctl := conn.Control(func(fd uintptr) {
		err = errors.Join(unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
		if err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err := errors.Join(ctl, err); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// play runs the actor on a pseudo-terminal and returns what it wrote there and
// to its standard output. Once the progress is shown, halfway may interfere.
func play(t *testing.T, how string, columns, rows uint16, env []string, halfway func(*exec.Cmd)) (screen, stdout string) {
	t.Helper()
	master, slave := openPTY(t, columns, rows)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append([]string{actor + "=" + how, "TERM=xterm", "LANG=C.UTF-8"}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, slave
	goOn, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	shown, drawn := make(chan string), make(chan struct{})
	go func() {
		var all []byte
		for chunk := make([]byte, 4096); ; {
			n, err := master.Read(chunk)
			before := bytes.Contains(all, []byte("rebooting"))
			all = append(all, chunk[:n]...)
			if !before && bytes.Contains(all, []byte("rebooting")) {
				close(drawn)
			}
			if err != nil { // EIO, when the last writer is gone
				shown <- string(all)
				return
			}
		}
	}()
	select {
	case <-drawn:
	case <-time.After(20 * time.Second):
		t.Error("the progress was not shown within 20 s")
	}
	if halfway != nil {
		halfway(cmd)
	}
	goOn.Close()
	if err := cmd.Wait(); err != nil && how != "die" {
		t.Fatal(err)
	}
	return <-shown, out.String()
}

func TestInATerminal(t *testing.T) {
	for _, c := range []struct {
		how           string
		columns, rows uint16
		want          string
	}{
		{"succeed", 80, 24, `baking
✓ windows    installing Windows (in the store)
✓ kube       compiling (2.0s)
✓ node       preparing the node (3.0s)`},
		{"fail", 80, 24, `baking
✓ windows    installing Windows (in the store)
✓ kube       compiling (2.0s)
✗ node       preparing the node (failed after 3.0s)
wbox: it broke`},
		{"leave it running", 40, 4, `baking
✓ windows    installing… (in the store)
✓ kube       compiling (2.0s)
- node       rebooting
wbox: it broke`},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			raw, stdout := play(t, c.how, c.columns, c.rows, nil, nil)
			s := newScreen(t, int(c.columns), int(c.rows))
			s.write(raw)
			if got := s.text(); got != c.want {
				t.Errorf("the screen:\n%s\nwant\n%s", got, c.want)
			}
			if want := map[bool]string{true: "result\n"}[c.how == "succeed"]; stdout != want {
				t.Errorf("standard output %q, want %q", stdout, want)
			}
			for _, s := range []string{"kube       compiling: compiling", " 99%", "of ~1m00s", "\x1b[36m"} {
				if c.columns == 80 && !strings.Contains(raw, s) {
					t.Errorf("%q was never shown", s)
				}
			}
			if n := strings.Count(raw, "compiling"); n > 20 {
				t.Errorf("a thousand events were drawn %d times", n)
			}
		})
	}
}

// TestKilledInATerminal: whatever ends wbox, the terminal stays in order: no
// cursor is hidden, lines are broken as ever, the prompt hides nothing.
func TestKilledInATerminal(t *testing.T) {
	t.Parallel()
	raw, _ := play(t, "die", 80, 24, nil, func(cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGKILL) }) //nolint:errcheck // Wait says so
	s := newScreen(t, 80, 24)
	s.write(raw)
	s.write("$ ")
	lines := strings.Split(s.text(), "\n")
	if len(lines) != 5 || lines[2] != "$" || !strings.Contains(lines[4], "node       preparing the node: rebooting") || s.dontBreak {
		t.Errorf("the screen:\n%s", s.text())
	}
}

func TestTerminalsWithoutADisplay(t *testing.T) {
	const want = `baking
windows    installing Windows: in the store
kube       compiling
node       preparing the node (took 1m00s before)
kube         compiling (0%)
node         rebooting
kube       compiling: done in 2.0s
node       preparing the node: done in 3.0s
`
	for name, c := range map[string]struct {
		columns uint16
		env     []string
		colour  bool
	}{
		"no width":                  {0, nil, true},
		"TERM=dumb":                 {80, []string{"TERM=dumb"}, false},
		"no TERM":                   {80, []string{"TERM="}, false},
		"TERM=dumb, colours anyway": {80, []string{"TERM=dumb", "COLOR=always"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, _ := play(t, "succeed", c.columns, 24, c.env, nil)
			raw = strings.ReplaceAll(raw, "\r\n", "\n")
			if uncoloured(raw) != want || (raw != want) != c.colour {
				t.Errorf("shown:\n%q\nwant\n%q", raw, want)
			}
		})
	}
}

func TestColoursInATerminal(t *testing.T) {
	for name, c := range map[string]struct {
		env    []string
		colour bool
	}{
		"by default":         {nil, true},
		"NO_COLOR":           {[]string{"NO_COLOR=1"}, false},
		"NO_COLOR is empty":  {[]string{"NO_COLOR="}, true},
		"never":              {[]string{"COLOR=never"}, false},
		"always beats it":    {[]string{"COLOR=always", "NO_COLOR=1"}, true},
		"auto is no command": {[]string{"COLOR=auto", "NO_COLOR=1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, _ := play(t, "succeed", 80, 24, c.env, nil)
			if got := uncoloured(raw) != raw; got != c.colour {
				t.Errorf("colours: %v, want %v: %q", got, c.colour, raw)
			}
			s := newScreen(t, 80, 24)
			s.write(raw)
			if !strings.HasSuffix(s.text(), "✓ node       preparing the node (3.0s)") {
				t.Errorf("the screen:\n%s", s.text())
			}
		})
	}
}

func TestATerminalOfASCII(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"LANG=C", "LC_ALL=POSIX", "LANG="} {
		raw, _ := play(t, "succeed", 80, 24, []string{locale}, nil)
		if strings.ContainsFunc(raw, func(r rune) bool { return r > 126 }) || !strings.Contains(raw, "+ \x1b[0mnode") {
			t.Errorf("%s: %q", locale, raw)
		}
	}
}

// TestResizedTerminal makes the terminal narrower and wider while it draws.
// What scrolled off the top is not looked at: tmux moves broken lines there
// although there is room below.
func TestResizedTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "tmux")
	tmux := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return strings.TrimRight(string(out), "\n")
	}
	signal := filepath.Join(t.TempDir(), "go-on")
	if err := unix.Mkfifo(signal, 0o600); err != nil {
		t.Fatal(err)
	}
	tmux("new-session", "-d", "-x", "80", "-y", "20", "-e", "LANG=C.UTF-8", "-e", actor+"=succeed", "'"+self+"' < '"+signal+"'; cat")
	defer tmux("kill-server")
	w, err := os.OpenFile(signal, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	waitFor := func(what string, ok func(screen string) bool) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for {
			got := tmux("capture-pane", "-p")
			if ok(got) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the screen stays\n%s", what, got)
			}
			time.Sleep(tick / 2)
		}
	}
	once := func(s string) bool {
		return strings.Count(s, "node ") == 1 && strings.Count(s, "kube ") == 1
	}
	for _, columns := range []int{80, 40, 24, 100, 15, 200, 40} {
		tmux("resize-window", "-x", strconv.Itoa(columns))
		waitFor(fmt.Sprint(columns, " columns"), func(s string) bool {
			for _, line := range strings.Split(s, "\n") {
				if strings.Contains(line, "node ") && (cells(line) >= columns || columns >= 40 && cells(line) != min(columns, widest)-1) {
					return false
				}
			}
			return once(s)
		})
	}
	w.Close()
	const end = "✓ kube       compiling (2.0s)\n✓ node       preparing the node (3.0s)\nresult"
	waitFor("the end", func(s string) bool { return strings.HasSuffix(s, end) && strings.Count(s, "kube ") == 1 })
}
