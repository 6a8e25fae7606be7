//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

// failingBuild is a wbox whose guest fails at once, in a process of its own.
type failingBuild struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stderr *bufio.Reader
	said   strings.Builder
}

func newFailingBuild(t *testing.T, args ...string) *failingBuild {
	t.Helper()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed")
	}
	b := &failingBuild{t: t, dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(os.Args[0], filepath.Join(b.dir, "qemu-system-x86_64")))
	must(isotest.WriteFake(filepath.Join(b.dir, "windows.iso"), isotest.Editions("2022"), &iso.StandIn{StandIn: true, Version: "1"}))
	must(kubetest.BuildFixture(t.Context(), filepath.Join(b.dir, "exes"), "v1.37.2", "a"))
	all := append([]string{"build", "--store", "store", "--iso", "windows.iso", "--k8s", "./exes", "--k8s-version", "v1.37.2"}, args...)
	b.cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainAsAChild$")
	b.cmd.Dir = b.dir
	b.cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(all, " "), fakeQEMU+"="+b.dir, "WBOX_WINE=none",
		"PATH="+b.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	stderr, err := b.cmd.StderrPipe()
	must(err)
	must(b.cmd.Start())
	b.stderr = bufio.NewReader(io.TeeReader(stderr, &b.said))
	return b
}

// line reads standard error up to a line with a text.
func (b *failingBuild) line(want string) string {
	b.t.Helper()
	for {
		line, err := b.stderr.ReadString('\n')
		if strings.Contains(line, want) {
			return line
		}
		if err != nil {
			b.t.Fatalf("%q was not said: %v\n%s", want, err, b.said.String())
		}
	}
}

// ends waits for the end and checks the exit code, and that nothing is left.
func (b *failingBuild) ends(want int) string {
	b.t.Helper()
	io.Copy(io.Discard, b.stderr) //nolint:errcheck // it ends with the process
	b.cmd.Wait()                  //nolint:errcheck // the exit code tells
	text := b.said.String()
	if strings.Contains(text, "OVMF") && strings.Contains(text, "install") {
		b.t.Skip("OVMF is not installed")
	}
	b.t.Logf("standard error:\n%s", text)
	if got := b.cmd.ProcessState.ExitCode(); got != want {
		b.t.Errorf("exit code %d, want %d", got, want)
	}
	if pid := b.qemu(); syscall.Kill(pid, 0) == nil {
		b.t.Errorf("the machine, process %d, runs on", pid)
	}
	for _, pattern := range []string{"store/results/*/disk", "store/results/.*/*", "store/runs/*/*/way-in.txt", "out/*.box"} {
		if left, _ := filepath.Glob(filepath.Join(b.dir, pattern)); len(left) > 0 {
			b.t.Errorf("left behind: %v", left)
		}
	}
	return text
}

// qemu is the machine's process.
func (b *failingBuild) qemu() int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "pid"))
	if err != nil {
		b.t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// What a failed guest's error says: the step, the reason, the last sign of life,
// and files that are there.
func TestAFailedGuestsError(t *testing.T) {
	t.Parallel()
	text := newFailingBuild(t).ends(5)
	m := regexp.MustCompile(`wbox: installing Windows Server 2022: waiting for the guest to answer: .*a stranger answers.*` +
		`; the machine was last seen at work .* ago; last sign of life: the guest has never answered; look into (\S+) \((.*)\)`).FindStringSubmatch(text)
	if m == nil || m[2] != "transcript.txt, serial.log, screen.png" {
		t.Fatalf("%s", text)
	}
	for _, name := range strings.Split(m[2], ", ") {
		if _, err := os.Stat(filepath.Join(m[1], name)); err != nil {
			t.Error(err)
		}
	}
}

// TestKeepOnFailure: the machine stays until a signal, in every way to show
// progress, and the failure stays the failure.
func TestKeepOnFailure(t *testing.T) {
	for mode, signal := range map[string]os.Signal{"plain": os.Interrupt, "none": os.Interrupt, "json": syscall.SIGTERM} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newFailingBuild(t, "--keep-on-failure", "--progress", mode)
			var k report.Kept
			if mode == "json" {
				var e report.Event
				if err := json.Unmarshal([]byte(b.line(`"machine-kept"`)), &e); err != nil || e.Kept == nil {
					t.Fatalf("%+v, %v", e, err)
				}
				k = *e.Kept
			} else {
				k = b.readKept()
			}
			b.mayLookInto(k)
			if err := b.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			text := b.ends(5)
			if !strings.Contains(text, "wbox: installing Windows Server 2022: ") || strings.Contains(text, "interrupted") {
				t.Errorf("%s", text)
			}
		})
	}
}

// readKept reads the lines for people.
func (b *failingBuild) readKept() report.Kept {
	b.t.Helper()
	var k report.Kept
	b.line("a stranger answers")
	pid := regexp.MustCompile(`process (\d+)`).FindStringSubmatch(b.line("is kept running"))
	k.PID, _ = strconv.Atoi(pid[1])
	value := func(what string) string {
		b.t.Helper()
		_, rest, _ := strings.Cut(b.line(what), what)
		return strings.TrimPrefix(strings.Fields(rest)[0], "in ")
	}
	k.WinRM, k.Console, k.Account = value("WinRM"), value("console"), value("account")
	_, secrets, _ := strings.Cut(strings.TrimSpace(b.line("passwords")), "in ")
	k.Secrets, k.RunDir, k.SerialLog, k.Screenshot = secrets, value("run folder"), value("serial log"), value("screenshot")
	return k
}

// mayLookInto checks that what was said is there, and that no password was said.
func (b *failingBuild) mayLookInto(k report.Kept) {
	b.t.Helper()
	if k.PID != b.cmd.Process.Pid || k.Console != "vnc://127.0.0.1:5999" || k.Account != "wbox-bake" || !strings.HasPrefix(k.WinRM, "https://127.0.0.1:") {
		b.t.Errorf("%+v", k)
	}
	if err := syscall.Kill(b.qemu(), 0); err != nil {
		b.t.Errorf("the machine is gone: %v", err)
	}
	time.Sleep(50 * time.Millisecond) // it stays
	if err := syscall.Kill(b.cmd.Process.Pid, 0); err != nil {
		b.t.Errorf("wbox is gone: %v", err)
	}
	for _, path := range []string{k.RunDir, k.SerialLog, k.Screenshot} {
		if _, err := os.Stat(path); err != nil {
			b.t.Error(err)
		}
	}
	text, err := os.ReadFile(k.Secrets)
	if err != nil {
		b.t.Fatal(err)
	}
	if fi, err := os.Stat(k.Secrets); err != nil || fi.Mode().Perm() != 0o600 {
		b.t.Errorf("%v, %v", fi.Mode(), err)
	}
	passwords := regexp.MustCompile(`(?m)^password\s+(\S+)$`).FindAllStringSubmatch(string(text), -1)
	if len(passwords) != 2 {
		b.t.Fatalf("%q", text)
	}
	events, err := filepath.Glob(filepath.Join(filepath.Dir(k.RunDir), "events.jsonl"))
	if err != nil || len(events) != 1 {
		b.t.Fatalf("%v, %v", events, err)
	}
	log, err := os.ReadFile(events[0])
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range passwords {
		if all := fmt.Sprint(b.said.String(), string(log)); strings.Contains(all, p[1]) {
			b.t.Errorf("a password was said in\n%s", all)
		}
	}
}
