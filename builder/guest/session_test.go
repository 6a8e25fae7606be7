package guest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/fake"
)

// open returns a session with g.
func open(t *testing.T, g *fake.Guest, change func(*guest.Options)) *guest.Session {
	t.Helper()
	o := guest.Options{Dial: g.Dial, Deadline: time.Minute, Gone: g.Off()}
	if change != nil {
		change(&o)
	}
	s, err := guest.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRunScript(t *testing.T) {
	reply := func(r fake.Reply) fake.Script { return func(fake.Run) fake.Reply { return r } }
	for name, c := range map[string]struct {
		mode   guest.Mode
		script fake.Script
		want   guest.State
		reboot bool
		err    string // part of the error
	}{
		"present":          {guest.Test, reply(fake.Reply{State: "present"}), guest.Present, false, ""},
		"absent":           {guest.Test, reply(fake.Reply{State: "absent"}), guest.Absent, false, ""},
		"absent, reboot":   {guest.Test, reply(fake.Reply{State: "absent", Reboot: true}), guest.Absent, true, ""},
		"set":              {guest.Set, reply(fake.Reply{State: "present"}), guest.Present, false, ""},
		"set, reboot":      {guest.Set, reply(fake.Reply{State: "absent", Reboot: true}), guest.Absent, true, ""},
		"failed":           {guest.Set, reply(fake.Reply{State: "failed", Message: "no space left"}), guest.Failed, false, "no space left (exit code 1)"},
		"failed, exit 0":   {guest.Set, reply(fake.Reply{Raw: `{"script":"20-do-it","mode":"set","state":"failed"}`}), "", false, "does not agree with exit code 0"},
		"present, exit 5":  {guest.Set, reply(fake.Reply{State: "present", Exit: 5}), "", false, "does not agree with exit code 5"},
		"reboot, exit 0":   {guest.Set, reply(fake.Reply{Raw: `{"script":"20-do-it","mode":"set","state":"absent","reboot":true}`}), "", false, "does not agree"},
		"3010 in a test":   {guest.Test, reply(fake.Reply{State: "absent", Reboot: true, Exit: 3010}), "", false, "does not agree"},
		"another script":   {guest.Test, reply(fake.Reply{Raw: `{"script":"30-other","mode":"test","state":"present"}`}), "", false, `is about "30-other"`},
		"another mode":     {guest.Test, reply(fake.Reply{Raw: `{"script":"20-do-it","mode":"set","state":"present"}`}), "", false, `mode "set"`},
		"no line":          {guest.Test, reply(fake.Reply{Raw: " \r\n", Exit: 1}), "", false, "no result line (exit code 1)"},
		"line not last":    {guest.Test, reply(fake.Reply{Raw: "{\"script\":\"20-do-it\",\"mode\":\"test\",\"state\":\"present\"}\r\nand more\r\n"}), "", false, "is no result line"},
		"two objects":      {guest.Test, reply(fake.Reply{Raw: `{"script":"20-do-it","mode":"test","state":"present"}{}`}), "", false, "something follows"},
		"unknown field":    {guest.Test, reply(fake.Reply{Raw: `{"script":"20-do-it","mode":"test","state":"present","extra":1}`}), "", false, "extra"},
		"unknown state":    {guest.Test, reply(fake.Reply{State: "fine"}), "", false, `"fine" is none`},
		"no state":         {guest.Test, reply(fake.Reply{Raw: `{"script":"20-do-it","mode":"test"}`}), "", false, "lacks"},
		"byte order mark":  {guest.Test, reply(fake.Reply{Raw: "\xef\xbb\xbf{\"script\":\"20-do-it\",\"mode\":\"test\",\"state\":\"present\"}\n"}), guest.Present, false, ""},
		"wrong mode asked": {"maybe", nil, "", false, "there is no guest script"},
	} {
		t.Run(name, func(t *testing.T) {
			g := fake.New()
			g.Scripts["20-do-it"] = c.script
			o, err := open(t, g, nil).RunScript(t.Context(), "20-do-it", c.mode, time.Minute)
			if c.err == "" {
				if err != nil || o.State != c.want || o.Reboot != c.reboot || o.Script != "20-do-it" || o.Mode != c.mode {
					t.Errorf("outcome %+v, error %v", o, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want one with %q", err, c.err)
			}
			var failed *guest.ScriptError
			if errors.As(err, &failed) != (c.want == guest.Failed) {
				t.Errorf("error %v is a ScriptError: want %v", err, c.want == guest.Failed)
			}
		})
	}
}

func TestRunScriptOutcome(t *testing.T) {
	g := fake.New()
	g.Scripts["99-look"] = func(fake.Run) fake.Reply {
		return fake.Reply{State: guest.Present, Message: "all there", Facts: map[string]any{"build": "20348"}, Executed: "stand-in"}
	}
	s := open(t, g, nil)
	o, err := s.RunScript(t.Context(), "99-look", guest.Test, time.Minute)
	if err != nil || o.Message != "all there" || o.Facts["build"] != "20348" || o.Executed != "stand-in" || o.ExitCode != 0 {
		t.Errorf("outcome %+v, error %v", o, err)
	}
	for _, name := range []string{"", "look", "99-Look", "99-look;x", "99-look'", "../99-look"} {
		if _, err := s.RunScript(t.Context(), name, guest.Test, time.Minute); err == nil {
			t.Errorf("the script name %q was taken", name)
		}
	}
}

func TestRunScriptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fake.New()
		g.Scripts["20-hangs"] = func(fake.Run) fake.Reply { time.Sleep(time.Hour); return fake.Reply{State: guest.Present} }
		began := time.Now()
		_, err := open(t, g, nil).RunScript(t.Context(), "20-hangs", guest.Set, 10*time.Minute)
		var u *guest.Unknown
		if !errors.As(err, &u) || time.Since(began) != 10*time.Minute || !strings.Contains(err.Error(), "limit 10m0s") {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Hour) // until the script has ended too
	})
}

// TestLostConnection: what was lost is unknown, and the next command works again.
func TestLostConnection(t *testing.T) {
	g := fake.New()
	s := open(t, g, nil)
	g.LoseNext(1)
	_, err := s.RunScript(t.Context(), "20-do-it", guest.Set, time.Minute)
	var u *guest.Unknown
	if !errors.As(err, &u) {
		t.Errorf("error %v, want *guest.Unknown", err)
	}
	if o, err := s.RunScript(t.Context(), "20-do-it", guest.Test, time.Minute); err != nil || o.State != guest.Present {
		t.Errorf("outcome %+v, error %v", o, err)
	}
}

func TestReboot(t *testing.T) {
	for name, c := range map[string]struct {
		guest  func(*fake.Guest)
		option func(*fake.Guest, *guest.Options)
		err    error
		text   string
		within time.Duration
	}{
		"at once":         {func(*fake.Guest) {}, nil, nil, "", time.Second},
		"takes its time":  {func(g *fake.Guest) { g.DownDials, g.BusyTests = 20, 10 }, nil, nil, "", 3 * time.Minute},
		"in progress":     {func(g *fake.Guest) { g.ShutdownExit = 1115 }, nil, guest.ErrNeverRebooted, "it still runs since its boot at 2026-01-01T12:00:00Z", 10 * time.Minute},
		"never":           {func(g *fake.Guest) { g.IgnoreReboot = true }, nil, guest.ErrNeverRebooted, "it still runs since", 10 * time.Minute},
		"never back":      {func(g *fake.Guest) { g.DownDials = 1 << 20 }, nil, guest.ErrNeverRebooted, "connection refused", 10 * time.Minute},
		"never ready":     {func(g *fake.Guest) { g.BusyTests = 1 << 20 }, nil, guest.ErrNotReady, "servicing is at work", 10*time.Minute + 5*time.Second},
		"refuses":         {func(g *fake.Guest) { g.ShutdownExit = 5 }, nil, nil, "exit code 5", time.Second},
		"a stranger then": {func(g *fake.Guest) { g.Refuse, g.RefuseAt, g.DownDials = true, 1, 3 }, nil, guest.ErrRefused, "", time.Minute},
		"clock was set": {func(*fake.Guest) {}, func(_ *fake.Guest, o *guest.Options) { o.Resets = func() int { return 7 } },
			guest.ErrNeverRebooted, "but the machine was not reset", 10 * time.Minute},
		"reset counts": {func(*fake.Guest) {}, func(g *fake.Guest, o *guest.Options) { o.Resets = g.Boots }, nil, "", time.Second},
		"dead machine": {func(g *fake.Guest) { g.IgnoreReboot = true }, func(_ *fake.Guest, o *guest.Options) {
			o.QuietLimit, o.Liveness = 2*time.Minute, func(context.Context) (uint64, error) { return 42, nil }
		}, guest.ErrNeverRebooted, "the machine was last seen at work 2m", 3 * time.Minute},
		"turned off": {func(g *fake.Guest) { g.DownDials = 1 << 20 }, func(_ *fake.Guest, o *guest.Options) {
			gone := make(chan struct{})
			time.AfterFunc(time.Minute, func() { close(gone) })
			o.Gone = gone
		}, guest.ErrGone, "", time.Minute},
		"reset again and again": {func(g *fake.Guest) { g.DownDials = 1 << 20 }, func(_ *fake.Guest, o *guest.Options) {
			began := time.Now()
			o.Resets = func() int { return int(time.Since(began) / (20 * time.Second)) }
		}, guest.ErrResetLoop, "11 times meanwhile", 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := fake.New()
				c.guest(g)
				s := open(t, g, func(o *guest.Options) {
					o.Gone = nil
					if c.option != nil {
						c.option(g, o)
					}
				})
				began := time.Now()
				err := s.Reboot(t.Context(), 10*time.Minute)
				if c.err == nil && c.text == "" {
					if err != nil || g.Boots() != 1 {
						t.Errorf("error %v, %d boots", err, g.Boots())
					}
				} else if err == nil || !strings.Contains(err.Error(), c.text) || (c.err != nil && !errors.Is(err, c.err)) {
					t.Errorf("error %v, want %v with %q", err, c.err, c.text)
				}
				if errors.Is(err, context.Canceled) {
					t.Errorf("%v passes for a cancellation by the user", err)
				}
				if both := errors.Is(err, guest.ErrNeverRebooted) && errors.Is(err, guest.ErrNotReady); both {
					t.Errorf("error %v is both", err)
				}
				if d := time.Since(began); d > c.within {
					t.Errorf("it took %v, want at most %v", d, c.within)
				}
			})
		})
	}
}

// TestRebootAnswerLost: the connection may break over the command that reboots.
func TestRebootAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fake.New()
		lose := &loseShutdown{g: g}
		s := open(t, g, func(o *guest.Options) { o.Dial = lose.Dial })
		if err := s.Reboot(t.Context(), time.Minute); err != nil || g.Boots() != 1 {
			t.Errorf("error %v, %d boots", err, g.Boots())
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		<-g.Off()
		if _, err := s.BootTime(t.Context()); err == nil {
			t.Error("a guest that is off told its boot time")
		}
	})
}

type loseShutdown struct{ g *fake.Guest }

func (l *loseShutdown) Dial(ctx context.Context) (guest.Conn, error) {
	c, err := l.g.Dial(ctx)
	return &loseShutdownConn{c, l.g}, err
}

type loseShutdownConn struct {
	guest.Conn
	g *fake.Guest
}

func (l *loseShutdownConn) Run(ctx context.Context, cmd guest.Command) (int, error) {
	if strings.HasPrefix(cmd.Line, "shutdown") {
		l.g.LoseNext(1)
	}
	return l.Conn.Run(ctx, cmd)
}

func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fake.New()
		g.DownDials = 0
		refused := 0
		_, err := guest.Open(t.Context(), guest.Options{Deadline: 58 * time.Second,
			Liveness: func(context.Context) (uint64, error) { return uint64(time.Now().UnixNano()), nil },
			Dial: func(context.Context) (guest.Conn, error) {
				refused++
				return nil, errors.New("connection refused")
			}})
		if err == nil || refused < 10 || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "the machine was last seen at work 0s ago") {
			t.Errorf("after %d dials: %v", refused, err)
		}
		g.Refuse = true
		began := time.Now()
		if _, err := guest.Open(t.Context(), guest.Options{Deadline: time.Minute, Dial: g.Dial}); !errors.Is(err, guest.ErrRefused) || time.Since(began) != 0 {
			t.Errorf("a refusal: %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := guest.Open(ctx, guest.Options{Deadline: time.Minute, Dial: g.Dial}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestTranscript: everything is written down, but for secrets.
func TestTranscript(t *testing.T) {
	const secret = "c4n@ry-Pässw0rd"
	var transcript strings.Builder
	g := fake.New()
	g.Scripts["20-do-it"] = func(fake.Run) fake.Reply { return fake.Reply{State: guest.Failed, Message: "bad: " + secret} }
	g.Files[`C:\x.log`] = "line one\r\nline two\r\n"
	s := open(t, g, func(o *guest.Options) { o.Transcript, o.Secrets = &transcript, []string{secret, ""} })
	_, _ = s.RunScript(t.Context(), "20-do-it", guest.Set, time.Minute)
	_, _ = s.ReadFile(t.Context(), `C:\x.log`, 1000)
	g.LoseNext(1)
	_, _ = s.BootTime(t.Context())
	text := transcript.String()
	for _, want := range []string{"# wbox: run 20-do-it set", "exit 1", "some progress\n", "bad: [redacted]", `# wbox: read C:\x.log`, "line one\nline two\n", "# wbox: boot-time", "outcome unknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("the transcript lacks %q:\n%s", want, text)
		}
	}
	var wide []byte
	for _, r := range secret {
		wide = append(wide, byte(r), byte(r>>8))
	}
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString(wide)} {
		if strings.Contains(text, form) {
			t.Errorf("the transcript shows %q", form)
		}
	}
}

func TestReadFile(t *testing.T) {
	g := fake.New()
	g.Files[`C:\Users\o'neil\x.log`] = strings.Repeat("0123456789", 1000)
	s := open(t, g, nil)
	if data, err := s.ReadFile(t.Context(), `C:\Users\o'neil\x.log`, 25); err != nil || string(data) != "5678901234567890123456789" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := s.ReadFile(t.Context(), `C:\none`, 25); err != nil || len(data) != 0 {
		t.Errorf("a file that is not there: %q, %v", data, err)
	}
	for _, path := range []string{"", "C:\\a\nb", "C:\\\u2019"} {
		if _, err := s.ReadFile(t.Context(), path, 25); err == nil {
			t.Errorf("the path %q was taken", path)
		}
	}
}

func TestCollectLogs(t *testing.T) {
	g := fake.New()
	g.Files[`C:\Windows\Panther\setupact.log`] = "setup did this\r\n"
	g.Files[`C:\Windows\Logs\CBS\CBS.log`] = strings.Repeat("x", 3<<20)
	g.Other = func(_ context.Context, line string, _ io.Reader, out, _ io.Writer) int {
		if strings.Contains(line, " System ") {
			fmt.Fprint(out, "Event[0]")
			return 0
		}
		return 15007
	}
	s := open(t, g, nil)
	dir := filepath.Join(t.TempDir(), "logs")
	if err := s.CollectLogs(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "Application") {
		t.Errorf("the error %v does not tell of the event log that is missing", err)
	}
	want := map[string]int{"panther-setupact.log": 16, "cbs.log": 1 << 20, "events-system.txt": 8}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Errorf("%v, %v", entries, err)
	}
	for name, size := range want {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Size() != int64(size) {
			t.Errorf("%s: %v, want %d bytes", name, err, size)
		}
	}
	// Without a guest it ends soon.
	g.LoseNext(100)
	before := len(g.Requests())
	if err := s.CollectLogs(t.Context(), dir); err == nil || len(g.Requests()) > before+1 {
		t.Errorf("error %v after %d more requests", err, len(g.Requests())-before)
	}
}

// TestStateMachine goes the whole way that a layer goes.
func TestStateMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fake.New()
		g.Scripts["20-install-features"] = fake.AfterReboot
		g.DownDials = 3
		s := open(t, g, nil)
		var got []string
		step := func(mode guest.Mode) {
			o, err := s.RunScript(t.Context(), "20-install-features", mode, time.Minute)
			got = append(got, fmt.Sprintf("%s %s %v %v", mode, o.State, o.Reboot, err))
		}
		step(guest.Test)
		step(guest.Set)
		step(guest.Test)
		if err := s.Reboot(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		step(guest.Test)
		want := "test absent false <nil>, set absent true <nil>, test absent true <nil>, test present false <nil>"
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	})
}
