package fake

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/wbox-dev/wbox/builder/guest"
)

// Run says how a script is run.
type Run struct {
	Name  string
	Mode  guest.Mode
	Boots int // since the first, 0 then
	Sets  int // how often it was run in set mode before
	SetAt int // the boot in which that was last, with Sets > 0
}

// Reply is what a script answers.
type Reply struct {
	State    guest.State
	Reboot   bool
	Message  string
	Facts    map[string]any
	Executed string
	Exit     int    // 0: what fits State and Reboot
	Raw      string // printed instead of a result line
}

// Script is one guest script.
type Script func(Run) Reply

// Always is a script whose state is there.
func Always(Run) Reply { return Reply{State: guest.Present} }

// Installed is a script whose state is there once it was set.
func Installed(r Run) Reply {
	if r.Mode == guest.Test && r.Sets == 0 {
		return Reply{State: guest.Absent, Message: "it was not set"}
	}
	return Reply{State: guest.Present}
}

// AfterReboot is a script whose state is there once it was set and then the
// guest was rebooted.
func AfterReboot(r Run) Reply {
	switch {
	case r.Sets > 0 && r.Boots > r.SetAt:
		return Reply{State: guest.Present}
	case r.Mode == guest.Set:
		return Reply{State: guest.Absent, Reboot: true, Message: "reboot to finish"}
	}
	return Reply{State: guest.Absent, Reboot: r.Sets > 0, Message: "not active"}
}

// Guest is a simulated Windows. Its exported fields are set before it is used.
// Scripts that nobody defined are Always for NN 00 and 99, else Installed.
type Guest struct {
	Scripts map[string]Script
	Files   map[string]string // content by path
	// DownDials is how many Dials are refused after a reboot begins.
	DownDials int
	// BusyTests is how many tests of readiness say "absent" after each boot.
	BusyTests int
	// IgnoreReboot makes shutdown.exe succeed without a reboot.
	IgnoreReboot bool
	// ShutdownExit is shutdown.exe's exit code; nothing happens unless it is 0.
	ShutdownExit int
	// Refuse makes every connection refuse the credentials, from the RefuseAt-th boot on.
	Refuse   bool
	RefuseAt int
	// IgnoreShutdown makes shutdown.exe succeed without turning the guest off.
	IgnoreShutdown bool
	// Interfere, if set, is called before each request is carried out. It may
	// write to standard output. An error is what the connection reports, and
	// ErrAnswered that the request is answered; then nothing is carried out. To
	// be silent it waits for ctx.
	Interfere func(ctx context.Context, request string, stdout io.Writer) error
	// Other runs what is no request of ours; without it: exit code 9009.
	Other Handler

	mu       sync.Mutex
	boots    int
	down     int
	busy     int
	lose     int
	sets     map[string][2]int
	requests []string
	off      chan struct{}
	isOff    bool
	clock    time.Duration
}

// New returns a guest that has just been booted for the first time.
func New() *Guest {
	return &Guest{Scripts: map[string]Script{}, Files: map[string]string{}, sets: map[string][2]int{}, off: make(chan struct{})}
}

// Off is closed once the guest was shut down.
func (g *Guest) Off() <-chan struct{} { return g.off }

// Boots returns how often the guest was rebooted.
func (g *Guest) Boots() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.boots
}

// BootTime returns when the current boot was.
func (g *Guest) BootTime() time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 123456700, time.UTC).Add(time.Duration(g.Boots())*10*time.Minute + g.clockSet())
}

// SetClock sets the guest's clock by d: Windows computes when it was booted from
// the clock and the time since, so that answer changes as well.
func (g *Guest) SetClock(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock += d
}

func (g *Guest) clockSet() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock
}

// Reboot reboots the guest though nobody asked for it.
func (g *Guest) Reboot() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reboot()
}

// reboot begins another boot. The lock is held.
func (g *Guest) reboot() {
	g.boots++
	g.down, g.busy = g.DownDials, g.BusyTests
}

// TurnOff turns the guest off though nobody asked for it.
func (g *Guest) TurnOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOff {
		g.isOff = true
		close(g.off)
	}
}

// ErrAnswered is for Interfere: what it wrote is all of the answer.
var ErrAnswered = errors.New("answered")

// ErrConnection is a broken connection, for Interfere.
func ErrConnection() error { return &guest.Unknown{Err: errLost} }

// Requests returns the requests so far: the first lines of bootstraps without
// "# wbox: ", and other command lines as they were.
func (g *Guest) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.requests...)
}

// LoseNext makes the connections of the next n commands break after the guest
// carried them out.
func (g *Guest) LoseNext(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = n
}

// Dial returns a connection, or an error while the guest is down.
func (g *Guest) Dial(ctx context.Context) (guest.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if g.isOff || g.down > 0 {
		g.down = max(0, g.down-1)
		return nil, errors.New("connection refused by the fake guest")
	}
	return &losing{Conn: Conn{Handler: g.handle, Refuse: g.Refuse && g.boots >= g.RefuseAt, Timeout: time.Second}, g: g}, nil
}

// losing is a connection that may break once the guest has done its part.
type losing struct {
	Conn
	g *Guest
}

func (l *losing) Run(ctx context.Context, cmd guest.Command) (int, error) {
	if f := l.g.Interfere; f != nil {
		request, ours := decode(cmd.Line)
		if !ours {
			request = cmd.Line
		}
		stdout := cmd.Stdout
		if stdout == nil {
			stdout = io.Discard
		}
		switch err := f(ctx, request, stdout); {
		case errors.Is(err, ErrAnswered):
			return 0, nil
		case err != nil:
			return 0, err
		}
	}
	exit, err := l.Conn.Run(ctx, cmd)
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if err == nil && l.g.lose > 0 {
		l.g.lose--
		return 0, &guest.Unknown{Err: errLost}
	}
	return exit, err
}

// Run runs one command line; it makes a Guest fit where a WinRM server wants a shell.
func (g *Guest) Run(ctx context.Context, _ string, line string, stdin io.Reader, stdout, stderr io.Writer) int {
	return g.handle(ctx, line, stdin, stdout, stderr)
}

func (g *Guest) handle(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) int {
	request, ours := decode(line)
	if !ours {
		request = line
	}
	g.mu.Lock()
	g.requests = append(g.requests, request)
	g.mu.Unlock()
	verb, rest, _ := strings.Cut(request, " ")
	switch {
	case ours && verb == "boot-time":
		fmt.Fprintf(stdout, "%s\r\n", g.BootTime().Format("2006-01-02T15:04:05.0000000Z07:00"))
	case ours && verb == "read":
		g.mu.Lock()
		content := g.Files[rest]
		g.mu.Unlock()
		_, _ = io.WriteString(stdout, content)
	case ours && verb == "run":
		name, mode, _ := strings.Cut(rest, " ")
		return g.script(name, guest.Mode(mode), stdout)
	case !ours && strings.HasPrefix(line, "shutdown.exe /"):
		return g.shutdown(line[len("shutdown.exe /"):])
	case g.Other != nil:
		return g.Other(ctx, line, stdin, stdout, stderr)
	default:
		fmt.Fprintf(stderr, "'%s' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n", verb)
		return 9009
	}
	return 0
}

func (g *Guest) shutdown(how string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ShutdownExit != 0:
		return g.ShutdownExit
	case strings.HasPrefix(how, "r") && !g.IgnoreReboot:
		g.reboot()
	case strings.HasPrefix(how, "s") && !g.isOff && !g.IgnoreShutdown:
		g.isOff = true
		close(g.off)
	}
	return 0
}

func (g *Guest) script(name string, mode guest.Mode, stdout io.Writer) int {
	g.mu.Lock()
	script := g.Scripts[name]
	sets := g.sets[name]
	run := Run{Name: name, Mode: mode, Boots: g.boots, Sets: sets[0], SetAt: sets[1]}
	if mode == guest.Set {
		g.sets[name] = [2]int{sets[0] + 1, g.boots}
	}
	busy := name == "00-test-ready" && g.busy > 0
	if busy {
		g.busy--
	}
	g.mu.Unlock()
	switch {
	case busy:
		script = func(Run) Reply { return Reply{State: guest.Absent, Message: "servicing is at work"} }
	case script == nil && (strings.HasPrefix(name, "00-") || strings.HasPrefix(name, "99-")):
		script = Always
	case script == nil:
		script = Installed
	}
	r := script(run)
	exit := r.Exit
	if exit == 0 && r.State == guest.Failed {
		exit = 1
	} else if exit == 0 && mode == guest.Set && r.Reboot {
		exit = 3010
	}
	if r.Raw != "" {
		_, _ = io.WriteString(stdout, r.Raw)
		return exit
	}
	line := map[string]any{"script": name, "mode": mode, "state": r.State, "reboot": r.Reboot, "message": r.Message, "facts": r.Facts}
	if r.Executed != "" {
		line["executed"] = r.Executed
	}
	data, err := json.Marshal(line)
	if err != nil {
		return 1
	}
	fmt.Fprintf(stdout, "some progress\r\n%s\r\n", data)
	return exit
}

// decode returns the request that a PowerShell bootstrap begins with.
func decode(line string) (request string, ok bool) {
	_, encoded, ok := strings.Cut(line, " -EncodedCommand ")
	if !ok || !strings.HasPrefix(line, "powershell.exe ") {
		return "", false
	}
	wide, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", false
	}
	var units []uint16
	for ; len(wide) >= 2; wide = wide[2:] {
		units = append(units, binary.LittleEndian.Uint16(wide))
	}
	first, _, _ := strings.Cut(string(utf16.Decode(units)), "\n")
	return strings.CutPrefix(first, "# wbox: ")
}
