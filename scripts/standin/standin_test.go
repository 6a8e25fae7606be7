package standin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/answerfile"
	"github.com/wbox-dev/wbox/builder/disk"
	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/winrm"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/hypervisor/qemu"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/scripts"
	"github.com/wbox-dev/wbox/scripts/standin/media"
)

// bootLimit is far above what a boot takes: these tests run beside others.
const bootLimit = 10 * time.Minute

// lab boots machines as a bake does.
type lab struct {
	t      *testing.T
	dir    string
	driver hypervisor.Driver
	access guest.Access
	medium string
}

func newLab(t *testing.T, powershell string) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a VM")
	}
	if missing := media.Missing(); len(missing) > 0 {
		t.Skipf("this machine lacks %s", strings.Join(missing, ", "))
	}
	driver := qemu.New(qemu.Options{})
	if _, err := driver.Probe(t.Context()); err != nil {
		t.Skipf("no QEMU: %v", err)
	}
	medium, err := media.Cached(t.Context(), media.Options{Release: "2022", PowerShell: powershell})
	if err != nil {
		t.Fatal(err)
	}
	access, err := guest.NewAccess(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, dir: t.TempDir(), driver: driver, access: access, medium: medium}
}

// seed writes a seed CD; change may alter the answer file.
func (l *lab) seed(name string, parameters map[string]any, change func(string) string) string {
	l.t.Helper()
	answer, err := answerfile.Render(answerfile.Params{Release: "2022", ImageName: "Windows Server 2022 SERVERSTANDARDCORE",
		Account: l.access.User, Password: l.access.Password})
	if err != nil {
		l.t.Fatal(err)
	}
	if parameters == nil {
		parameters = map[string]any{}
	}
	parameters["10-enable-winrm"] = map[string]any{"pfxPassword": l.access.PFXPassword, "account": l.access.User}
	params, err := json.Marshal(parameters)
	if err != nil {
		l.t.Fatal(err)
	}
	text := string(answer)
	if change != nil {
		text = change(text)
	}
	files := []iso.File{iso.FromBytes("Autounattend.xml", []byte(text)),
		iso.FromBytes("payload/winrm.pfx", l.access.PFX), iso.FromBytes("wbox/parameters.json", params)}
	err = fs.WalkDir(scripts.Guest, "guest", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(scripts.Guest, path)
		files = append(files, iso.FromBytes("wbox/"+strings.TrimPrefix(path, "guest/"), data))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	path := filepath.Join(l.dir, name+".iso")
	if err := iso.CreateSeed(l.t.Context(), path, guest.SeedLabel, files); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// tool is qemu-img.
func (l *lab) tool() *disk.Tool {
	l.t.Helper()
	tool, err := disk.Find("")
	if err != nil {
		l.t.Skip(err)
	}
	return tool
}

func (l *lab) disk(name string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name+".qcow2")
	if err := l.tool().Create(l.t.Context(), path, 64<<30); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// payload makes the smallest files that pass for programs for amd64.
func (l *lab) payload() []disk.PayloadFile {
	l.t.Helper()
	program := make([]byte, 1<<20)
	copy(program, "MZ")
	program[0x3c] = 0x80
	copy(program[0x80:], "PE\x00\x00\x64\x86")
	var files []disk.PayloadFile
	for i, name := range []string{"kubelet.exe", "kube-log-runner.exe"} {
		program[1000] = byte(i)
		path := filepath.Join(l.dir, name)
		if err := os.WriteFile(path, program, 0o644); err != nil {
			l.t.Fatal(err)
		}
		sum := sha256.Sum256(program)
		files = append(files, disk.PayloadFile{Name: name, Path: path, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(program))})
	}
	return files
}

// overlay puts the payload onto an overlay of a sealed disk.
func (l *lab) overlay(base string, payload []disk.PayloadFile) string {
	l.t.Helper()
	path := filepath.Join(l.dir, "box.qcow2")
	if err := l.tool().CreateOverlay(l.t.Context(), base, path); err != nil {
		l.t.Fatal(err)
	}
	if err := l.tool().WritePayload(l.t.Context(), path, payload, l.t.TempDir()); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// start boots a machine with that disk and media; the first boots if the disk
// does not.
func (l *lab) start(name, disk string, media ...string) *vm {
	l.t.Helper()
	dir := filepath.Join(l.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	m := &vm{lab: l, serial: filepath.Join(dir, "serial.log"), begun: time.Now()}
	cfg := hypervisor.Config{Name: name, Dir: dir, CPUs: 2, MemoryMiB: 2048, Firmware: hypervisor.UEFI,
		Disk: disk, Media: media, BootMedia: len(media) > 1, Accelerator: hypervisor.Emulation, SerialLog: m.serial,
		Forwards: []hypervisor.Forward{{Name: "https", GuestPort: 5986}, {Name: "http", GuestPort: 5985}}}
	var err error
	if m.Machine, err = l.driver.Start(l.t.Context(), cfg); err != nil {
		l.t.Fatal(err)
	}
	l.compareArgv(cfg)
	l.t.Cleanup(func() {
		m.Kill() //nolint:errcheck // the test is over
		if l.t.Failed() {
			l.t.Logf("serial log of %s:\n%s", name, m.log())
		}
	})
	return m
}

// vm is one running machine.
type vm struct {
	hypervisor.Machine
	lab    *lab
	serial string
	begun  time.Time
}

// log returns what the stand-in printed on the serial port.
func (m *vm) log() string {
	data, err := os.ReadFile(m.serial)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, "WBOX-STANDIN") || strings.Contains(line, "panic") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// waitLog waits for a line on the serial port.
func (m *vm) waitLog(want string) {
	m.lab.t.Helper()
	ctx, cancel := context.WithTimeout(m.lab.t.Context(), bootLimit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(m.log(), want) {
		select {
		case <-ctx.Done():
			m.lab.t.Fatalf("%q did not come on the serial port", want)
		case <-m.Done():
			m.lab.t.Fatalf("the machine ended before %q: %v", want, m.Err())
		case <-tick.C:
		}
	}
}

// waitOff waits until the machine has turned itself off.
func (m *vm) waitOff() {
	m.lab.t.Helper()
	select {
	case <-m.Done():
		if err := m.Err(); err != nil {
			m.lab.t.Fatalf("the machine ended with %v", err)
		}
	case <-time.After(bootLimit):
		m.lab.t.Fatal("the machine does not turn itself off")
	}
}

// session opens a session over HTTPS with the bake's account, or over HTTP with
// the box's.
func (m *vm) session(user, password string, tls bool) *guest.Session {
	m.lab.t.Helper()
	name := "http"
	if tls {
		name = "https"
	}
	s, err := guest.Open(m.lab.t.Context(), guest.Options{Deadline: bootLimit, Interval: time.Second, Gone: m.Done(), Resets: m.Resets,
		Dial: func(context.Context) (guest.Conn, error) {
			var to netip.AddrPort
			to, err := m.Endpoint(name)
			if err != nil {
				return nil, err
			}
			return winrm.Dial(winrm.Config{Addr: to, User: user, Password: guest.Secret(password), TLS: tls, PinnedSHA256: m.lab.access.Pin})
		}})
	if err != nil {
		m.lab.t.Fatalf("getting in: %v", err)
	}
	m.lab.t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
	m.cost("first contact")
	return s
}

// cost logs the wall time and, on Linux, the processor time of the machine.
func (m *vm) cost(what string) {
	m.lab.t.Logf("%s: %.0f s, %s CPU-seconds", what, time.Since(m.begun).Seconds(), children())
}
