package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/machinetest"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// logonCommand is what our answer files run at the first logon.
const logonCommand = `powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command "$ErrorActionPreference = 'Stop'; ` +
	`$seed = Get-CimInstance -ClassName Win32_LogicalDisk -Filter 'VolumeName=''WBOXSEED'''; ` +
	`& ($seed.DeviceID + '\wbox\Invoke-WboxScript.ps1') -Name 10-enable-winrm -Mode set; exit $LASTEXITCODE"`

// bench is an agent without a machine.
type bench struct {
	*Agent
	fake   *machinetest.Fake
	access guest.Access

	mu    sync.Mutex
	ports map[int]netip.AddrPort // the WinRM port -> where it is
}

func newBench(t *testing.T, first state.State) *bench {
	t.Helper()
	access, err := guest.NewAccess(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c, seed := t.TempDir(), t.TempDir()
	first.Accounts = append(first.Accounts, state.Account{Name: access.User, Password: access.Password}, state.Account{Name: "off", Disabled: true})
	if err := state.Create(c, first); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := json.Marshal(map[string]any{
		"10-enable-winrm": map[string]string{"pfxPassword": access.PFXPassword},
		"90-generalize":   map[string]string{"account": "vagrant", "password": "vagrant", "bakeAccount": access.User},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"wbox/parameters.json": parameters, "payload/winrm.pfx": access.PFX} {
		path := filepath.Join(seed, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{access: access, ports: map[int]netip.AddrPort{}, fake: &machinetest.Fake{Booted: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	b.Agent = &Agent{State: store, Machine: b.fake, C: c, Logf: t.Logf, Seed: func(context.Context) (string, error) { return seed, nil },
		Listen: func(ctx context.Context, port int) (net.Listener, error) {
			var config net.ListenConfig
			l, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
			if err == nil {
				b.mu.Lock()
				b.ports[port] = l.Addr().(*net.TCPAddr).AddrPort()
				b.mu.Unlock()
			}
			return l, err
		}}
	return b
}

func (b *bench) port(number int) (netip.AddrPort, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.ports[number]
	return p, ok
}

// session opens a session as a bake does.
func (b *bench) session(t *testing.T) *guest.Session {
	t.Helper()
	s, err := guest.Open(t.Context(), guest.Options{Deadline: 30 * time.Second, Interval: 50 * time.Millisecond, Dial: func(context.Context) (guest.Conn, error) {
		to, _ := b.port(httpsPort)
		return winrm.Dial(winrm.Config{Addr: to, User: b.access.User, Password: guest.Secret(b.access.Password), TLS: true, PinnedSHA256: b.access.Pin})
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
	return s
}

// TestFirstLogon boots as after Setup and gets in with the project's own client.
func TestFirstLogon(t *testing.T) {
	b := newBench(t, state.State{AutoLogon: guest.BakeAccount, Commands: []state.Command{{Pass: "oobeSystem", Line: logonCommand}}})
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.State.Get(); len(got.Commands) > 0 || got.AutoLogon != "" || !got.WinRM.HTTPS {
		t.Fatalf("after the first logon: %+v", got)
	}
	if _, open := b.port(httpPort); open {
		t.Error("HTTP is open although nobody asked for it")
	}
	s := b.session(t)
	outcome, err := s.RunScript(t.Context(), "10-enable-winrm", guest.Test, time.Minute)
	if err != nil || outcome.State != guest.Present || outcome.Executed != "stand-in" {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestSeal(t *testing.T) {
	b := newBench(t, state.State{Commands: []state.Command{{Pass: "oobeSystem", Line: logonCommand}}})
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.session(t).RunScript(t.Context(), "90-generalize", guest.Set, time.Minute); err != nil {
		t.Fatal(err)
	}
	deadline := time.NewTimer(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(b.fake.Restarts()) == 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("the machine is not turned off")
		}
	}
	s := b.State.Get()
	if s.Account(b.access.User) != nil || s.Account("vagrant") == nil || s.WinRM.HTTPS || s.WinRM.Basic || !s.WinRM.HTTP {
		t.Errorf("sealed: %+v", s)
	}
	if entries, err := os.ReadDir(b.certificates()); err == nil {
		t.Errorf("certificates are left: %v", entries)
	}
	if !b.fake.Restarts()[0].Off {
		t.Error("the machine is restarted, not turned off")
	}
}

func TestRun(t *testing.T) {
	b := newBench(t, state.State{ComputerName: "WIN-ABC", Build: 20348, Revision: 587})
	for line, want := range map[string]struct {
		exit   int
		stdout string
		stderr string
	}{
		`hostname`:                           {0, "WIN-ABC\r\n", ""},
		`ver`:                                {0, "\r\nMicrosoft Windows [Version 10.0.20348.587]\r\n", ""},
		`echo a  "b"`:                        {0, "a  \"b\"\r\n", ""},
		`cmd /c exit 7`:                      {7, "", ""},
		`cmd.exe /s /c "echo a & exit /b 3"`: {3, "a\r\n", ""},
		`exit 5 & echo not`:                  {5, "", ""},
		`nosuch 2>nul || echo other`:         {0, "other\r\n", ""},
		`nosuch >nul 2>nul && echo other`:    {9009, "", ""},
		`hostname >nul && echo x`:            {0, "x\r\n", ""},
		`powershell -Bogus`:                  {badArguments, "", "-Bogus"},
		`powershell Get-Item`:                {1, "", "only known requests"},
		`dir | more`:                         {1, "", "pipes"},
		`cmd /k dir`:                         {1, "", "/c only"},
		`wbox-standin.exe frobnicate`:        {1, "", "unknown request"},
	} {
		var stdout, stderr bytes.Buffer
		exit := b.Run(t.Context(), "wbox", line, strings.NewReader(""), &stdout, &stderr)
		if exit != want.exit || stdout.String() != want.stdout || !strings.Contains(stderr.String(), want.stderr) || (want.stderr == "" && stderr.Len() > 0) {
			t.Errorf("%s: %d %q %q, want %+v", line, exit, &stdout, &stderr, want)
		}
	}
}

func TestAnswerRead(t *testing.T) {
	b := newBench(t, state.State{})
	if err := os.MkdirAll(filepath.Join(b.C, "Windows"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.C, "Windows", "x.log"), []byte("line\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{`C:\Windows\x.log`: "line\r\n", `C:\Windows\none.log`: "", `C:\..\x`: "", `D:\x`: ""} {
		var out bytes.Buffer
		if exit := b.answer(t.Context(), pshost.Request{Kind: "command", Text: "# wbox: read " + path + "\nGet-Content"}, Streams{Stdout: &out, Stderr: &out}); exit != 0 || out.String() != want {
			t.Errorf("%s: %d %q", path, exit, &out)
		}
	}
}

// fakeHost notes what PowerShell is asked for.
type fakeHost struct {
	asked []pshost.Request
	exit  int
	err   error
}

func (h *fakeHost) Run(_ context.Context, r pshost.Request, stdout, _ io.Writer) (int, error) {
	h.asked = append(h.asked, r)
	fmt.Fprint(stdout, "out")
	return h.exit, h.err
}

func TestPowerShell(t *testing.T) {
	script := base64.StdEncoding.EncodeToString([]byte("e\x00x\x00i\x00t\x00"))
	for line, want := range map[string]pshost.Request{
		"powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -EncodedCommand " + script: {Kind: "command", Text: "exit"},
		`powershell -nop -c "Get-Item 'a  b'"`:                                                        {Kind: "command", Text: "Get-Item 'a  b'"},
		`powershell -NoLogo Get-Item C:\`:                                                             {Kind: "command", Text: `Get-Item C:\`},
		`powershell -ep Bypass -File "C:\a b.ps1" -Name "x y"`:                                        {Kind: "file", Text: `C:\a b.ps1`, Args: []string{"-Name", "x y"}},
		`cmd /c "sc.exe query kubelet"`:                                                               {Kind: "program", Program: "sc.exe", Args: []string{"query", "kubelet"}},
	} {
		b := newBench(t, state.State{})
		host := &fakeHost{exit: 3}
		b.Host = host
		var stdout, stderr bytes.Buffer
		exit := b.Run(t.Context(), "wbox", line, strings.NewReader(""), &stdout, &stderr)
		want.User = "wbox"
		if exit != 3 || stdout.String() != "out" || len(host.asked) != 1 || !reflect.DeepEqual(host.asked[0], want) {
			t.Errorf("%s: %d %q %q, asked %+v", line, exit, &stdout, &stderr, host.asked)
		}
	}
}

func TestPowerShellGone(t *testing.T) {
	b := newBench(t, state.State{})
	b.Host = &fakeHost{err: errors.New("it ended")}
	var stderr bytes.Buffer
	if exit := b.Run(t.Context(), "wbox", "powershell x", strings.NewReader(""), io.Discard, &stderr); exit == 0 || !strings.Contains(stderr.String(), "it ended") {
		t.Errorf("%d %q", exit, &stderr)
	}
}

// TestOwn walks through what the simulated Windows commands ask for.
func TestOwn(t *testing.T) {
	b := newBench(t, state.State{})
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.fake.Table = []machine.Partition{{Number: 3, FileSystem: "FAT32", Label: "WBOX", Attributes: machine.Hidden}}
	b.fake.Content = map[int]string{3: t.TempDir()}
	pfx := filepath.Join(t.TempDir(), "x.pfx")
	if err := os.WriteFile(pfx, b.access.PFX, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(exit int, words ...string) string {
		t.Helper()
		r := b.Program(t.Context(), "wbox", "wbox-standin.exe", words)
		if r.Exit != exit {
			t.Errorf("%q: %+v, want exit code %d", words, r, exit)
		}
		return strings.TrimSpace(r.Stdout)
	}
	if got := run(0, "partitions"); !strings.Contains(got, `"attributes":"0x4000000000000000"`) {
		t.Errorf("partitions: %s", got)
	}
	run(1, "mount", "3", `C:\mnt`) // hidden
	run(0, "partitions", "attributes", "3", "0x9000000000000000")
	run(0, "mount", "3", `C:\mnt`)
	run(0, "unmount", `C:\mnt`)
	run(1, "mount", "3", `D:\mnt`)
	run(0, "accounts", "set", `{"name":"vagrant","password":"x"}`)
	if got := run(0, "accounts"); !strings.Contains(got, `"vagrant"`) {
		t.Errorf("accounts: %s", got)
	}
	run(0, "accounts", "remove", "VAGRANT")
	run(1, "accounts", "remove", "vagrant")
	thumbprint := strings.Trim(run(0, "certificates", "import", pfx, b.access.PFXPassword), `"`)
	if len(thumbprint) != 40 {
		t.Errorf("thumbprint %q", thumbprint)
	}
	run(0, "winrm", "set", `{"https":true,"certificate":"`+thumbprint+`","basic":true}`)
	if _, open := b.port(httpsPort); !open {
		t.Error("HTTPS is not open")
	}
	run(0, "winrm", "set", `{"https":false}`)
	run(0, "certificates", "remove", thumbprint)
	if got := run(0, "certificates"); got != "[]" {
		t.Errorf("certificates: %s", got)
	}
	run(0, "power", "off", "5")
	run(0, "power", "abort")
	if len(b.fake.Restarts()) != 0 {
		t.Error("the power-off was not aborted")
	}
	run(1, "power", "off")
	if got := run(0, "info"); !strings.Contains(got, `"bootTime":"2026-01-02T03:04:05Z"`) {
		t.Errorf("info: %s", got)
	}
	run(1, "licence", "activate") // there is no network
	b.Outside = func(context.Context) error { return nil }
	run(0, "licence", "activate")
	if got := run(0, "licence"); !b.State.Get().Activated || !strings.Contains(got, `"status":`) || !strings.Contains(got, `"remaining":`) || !strings.Contains(got, `"description":`) {
		t.Errorf("licence: %s", got)
	}
}
