package windows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/programs"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
)

// world is what the agent has under its feet: the folder that plays C:, the
// seed, and what the simulated commands change in it. It answers as the real
// agent does, over a machine that is not there.
type world struct {
	t       *testing.T
	c, seed string
	stat    string // the file that plays /proc/stat

	mu        sync.Mutex
	accounts  []map[string]any
	winrm     map[string]any
	certs     map[string]bool
	attrs     uint64 // of partition 3
	auto      string // who logs on by himself
	payload   string // a folder that plays the payload partition's content
	power     []string
	online    bool // the network leads out
	activated bool
	ctr       func(context.Context, []string) programs.Result // nil: the medium has no containerd
	called    []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, c: filepath.Join(dir, "c"), seed: filepath.Join(dir, "seed"), stat: filepath.Join(dir, "stat"),
		payload: filepath.Join(dir, "payload"), certs: map[string]bool{}, winrm: map[string]any{"http": false, "https": false, "basic": false, "allowUnencrypted": false},
		auto: "wbox", accounts: []map[string]any{
			{"name": "Administrator", "password": "bake", "groups": []string{"Administrators"}},
			{"name": "Guest", "password": "", "groups": []string{"Guests"}, "disabled": true},
			{"name": "wbox", "password": "bake", "groups": []string{"Administrators"}}}}
	for _, d := range []string{"Windows/Panther", "Windows/Temp", "Windows/System32/Sysprep", "Windows/Logs/CBS", "Users", "ProgramData", "Program Files"} {
		w.must(os.MkdirAll(filepath.Join(w.c, d), 0o755))
	}
	w.must(os.MkdirAll(w.payload, 0o755))
	w.write(filepath.Join(w.c, "Windows/Panther/unattend.xml"), "<password/>")
	w.boot(1_700_000_000)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o644))
}

// boot sets the time of the boot.
func (w *world) boot(seconds int) {
	w.write(w.stat, fmt.Sprintf("cpu 0 0\nbtime %d\n", seconds))
}

// call answers a callback.
func (w *world) call(program string, args []string) pshost.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.called = append(w.called, program+" "+strings.Join(args, " "))
	switch strings.ToLower(program) {
	case "wbox-standin.exe":
		if args[0] == "ctr" && w.ctr != nil {
			return pshost.Result(w.ctr(w.t.Context(), args[1:]))
		}
		value, err := w.own(args)
		if err != nil {
			return pshost.Result{Exit: 1, Stderr: err.Error()}
		}
		line, err := json.Marshal(value)
		w.must(err)
		return pshost.Result{Stdout: string(line) + "\n"}
	case "shutdown.exe":
		w.power = append(w.power, strings.Join(args, " "))
		return pshost.Result{}
	case "hostname.exe", "hostname":
		return pshost.Result{Stdout: "WIN-TEST\r\n"}
	}
	return pshost.Result{Exit: 9009, Stderr: "'" + program + "' is not recognized\r\n"}
}

const payloadGUID = "11111111-2222-3333-4444-555555555555"

func (w *world) own(args []string) (any, error) {
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "info":
		return map[string]any{"release": "2022", "build": 20348, "revision": 587, "edition": "ServerStandardEval", "installation": "Server Core",
			"computerName": "WIN-TEST", "letters": map[string]int{"C": 4}, "installed": "2026-12-01T16:30:00Z", "autoLogon": w.auto, "seed": w.seed, "c": w.c}, nil
	case "licence":
		if w.activated {
			return map[string]any{"description": "Windows(R) Operating System, TIMEBASED_EVAL channel", "status": 1, "remaining": 259200}, nil
		}
		return map[string]any{"description": "Windows(R) Operating System, TIMEBASED_EVAL channel", "status": 2, "remaining": 14400}, nil
	case "licence activate":
		if !w.online {
			return nil, fmt.Errorf("the network does not lead out")
		}
		w.activated = true
		return true, nil
	case "partitions":
		return []map[string]any{
			{"number": 1, "type": "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "guid": "A0000000-0000-0000-0000-000000000001", "attributes": 0, "offset": 1 << 20, "size": 100 << 20, "fileSystem": "FAT32", "label": "SYSTEM"},
			{"number": 3, "type": "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "guid": payloadGUID, "attributes": w.attrs, "offset": 200 << 20, "size": 1 << 30, "fileSystem": "FAT32", "label": "WBOX"},
			{"number": 4, "type": "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "guid": "A0000000-0000-0000-0000-000000000004", "attributes": 0, "offset": 2 << 30, "size": 30 << 30, "fileSystem": "NTFS", "label": "Windows"}}, nil
	case "partitions attributes":
		var err error
		if args[2] != "3" {
			return nil, fmt.Errorf("attributes of partition %s", args[2])
		}
		_, err = fmt.Sscan(args[3], &w.attrs)
		return true, err
	case "mount 3":
		if w.attrs>>62&1 == 1 {
			return nil, fmt.Errorf("partition 3 is hidden and has no volume")
		}
		entries, err := os.ReadDir(w.payload)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(w.payload, e.Name()))
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(w.linux(args[2]), e.Name()), data, 0o444); err != nil {
				return nil, err
			}
		}
		return true, nil
	case "accounts":
		return w.accounts, nil
	case "accounts set":
		var a map[string]any
		if err := json.Unmarshal([]byte(args[2]), &a); err != nil {
			return nil, err
		}
		for i := range w.accounts {
			if w.accounts[i]["name"] == a["name"] {
				w.accounts[i] = a
				return true, nil
			}
		}
		w.accounts = append(w.accounts, a)
		return true, nil
	case "winrm":
		return w.winrm, nil
	case "winrm set":
		return true, json.Unmarshal([]byte(args[2]), &w.winrm)
	case "certificates":
		list := []string{}
		for c := range w.certs {
			list = append(list, c)
		}
		return list, nil
	}
	return w.ownNamed(args)
}

// ownNamed answers requests whose second word is a name.
func (w *world) ownNamed(args []string) (any, error) {
	switch args[0] {
	case "unmount":
		dir := w.linux(args[1])
		return true, errAfter(os.RemoveAll(dir), os.Mkdir(dir, 0o755))
	case "accounts":
		for i := range w.accounts {
			if w.accounts[i]["name"] == args[2] {
				w.accounts = append(w.accounts[:i], w.accounts[i+1:]...)
				return true, nil
			}
		}
	case "certificates":
		if args[1] == "import" {
			thumbprint, err := thumbprintOf(args[2], args[3])
			w.certs[thumbprint] = true
			return thumbprint, err
		}
		if w.certs[args[2]] {
			delete(w.certs, args[2])
			return true, nil
		}
	}
	return nil, fmt.Errorf("wrong use: %q", args)
}

func errAfter(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// linux maps a path of C:.
func (w *world) linux(path string) string {
	return filepath.Join(w.c, strings.ReplaceAll(path[3:], `\`, "/"))
}

// host is a running Host.ps1.
type host struct {
	w     *world
	stdin io.WriteCloser
	cmd   *exec.Cmd
	log   *os.File
	*pshost.Host
}

// reply is what a request printed and returned.
type reply struct {
	stdout, stderr string
	exit           int
}

// build makes the library and the functions into the world's state, as the
// medium's builder does ahead.
func (w *world) build(pwsh, state string) {
	w.t.Helper()
	out, err := exec.Command(pwsh, "-NoProfile", "-File", "Build.ps1", "-OutFolder", state).CombinedOutput()
	if err != nil {
		w.t.Fatalf("Build.ps1: %v: %s", err, out)
	}
}

// powershell finds PowerShell; without one the test is skipped, but in CI.
func powershell(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs PowerShell")
	}
	out, err := exec.Command("../../dev/find-pwsh.sh").Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no PowerShell, and CI=true wants one")
		}
		t.Skip("no PowerShell")
	}
	return strings.TrimSpace(string(out))
}

// start starts the host over the world and waits until it is ready.
func (w *world) start() *host {
	w.t.Helper()
	pwsh := powershell(w.t)
	state := filepath.Join(w.c, "wbox-standin", "windows")
	if _, err := os.Stat(state); err != nil {
		w.build(pwsh, state)
	}
	log, err := os.Create(filepath.Join(w.t.TempDir(), "host.log"))
	w.must(err)
	h := &host{w: w, log: log}
	h.cmd = exec.Command(pwsh, "-NoLogo", "-NoProfile", "-NonInteractive", "-File", "Host.ps1")
	h.cmd.Env = append(os.Environ(), "WBOX_STANDIN_ROOT="+w.c, "WBOX_STANDIN_PROCSTAT="+w.stat, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	h.cmd.Stderr = log
	h.stdin, err = h.cmd.StdinPipe()
	w.must(err)
	stdout, err := h.cmd.StdoutPipe()
	w.must(err)
	w.must(h.cmd.Start())
	w.t.Cleanup(h.stop)
	h.Host = pshost.New(stdout, h.stdin, w.call)
	select {
	case <-h.Ready():
	case <-time.After(3 * time.Minute):
		w.t.Fatalf("the host is not ready: %s", h.logged())
	}
	return h
}

// logged is what belongs to no request.
func (h *host) logged() string {
	data, err := os.ReadFile(h.log.Name())
	h.w.must(err)
	return string(data)
}

// stop ends the host, as a power-off does.
func (h *host) stop() {
	h.stdin.Close()
	killed := time.AfterFunc(20*time.Second, func() { h.cmd.Process.Kill() }) //nolint:errcheck // it is gone already
	defer killed.Stop()
	h.cmd.Wait() //nolint:errcheck // its exit code says nothing
}

// request runs something and waits for its end.
func (h *host) request(r pshost.Request) reply {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(h.w.t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	exit, err := h.Run(ctx, r, &stdout, &stderr)
	if err != nil {
		h.w.t.Fatalf("%+v: %v; %s", r, err, h.logged())
	}
	return reply{stdout.String(), stderr.String(), exit}
}

// command runs a script as the bake's account.
func (h *host) command(text string) reply {
	h.w.t.Helper()
	return h.request(pshost.Request{Kind: "command", User: "wbox", Text: text})
}
