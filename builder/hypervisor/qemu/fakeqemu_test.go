package qemu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

// fakeMode is the environment variable that turns the test binary into a
// stand-in for QEMU, and says how it behaves.
const fakeMode = "WBOX_FAKE_QEMU"

// fakeFolder names the folder in which the stand-in counts its starts.
const fakeFolder = "WBOX_FAKE_QEMU_DIR"

func TestMain(m *testing.M) {
	mode := os.Getenv(fakeMode)
	switch {
	case mode == "":
		os.Exit(m.Run())
	case mode == "parent":
		parent()
	case len(os.Args) > 1 && os.Args[1] == "--version":
		fmt.Println("QEMU emulator version " + map[bool]string{true: "6.1.1", false: "7.2.22"}[mode == "old"])
	default:
		os.Exit(playQEMU(mode))
	}
}

// newFake returns a driver that starts the stand-in, on what looks like a host
// with KVM and firmware.
func newFake(t *testing.T, mode string) *Driver {
	t.Helper()
	t.Setenv(fakeMode, mode)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's farewell is not waited for
	dir := t.TempDir()
	t.Setenv(fakeFolder, dir)
	d := New(Options{
		Program:      os.Args[0],
		FirmwareCode: touch(t, filepath.Join(dir, "code.fd")),
		FirmwareVars: touch(t, filepath.Join(dir, "vars.fd")),
	})
	d.goos, d.goarch, d.kvmDevice = "linux", "amd64", touch(t, filepath.Join(dir, "kvm"))
	return d
}

// playQEMU behaves as QEMU does at its edges, and returns the exit code.
func playQEMU(mode string) int {
	args := strings.Join(os.Args[1:], " ")
	starts, _ := os.OpenFile(filepath.Join(os.Getenv(fakeFolder), "starts"), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	fmt.Fprintln(starts, args)
	refuse := func(words string) int {
		fmt.Fprintln(os.Stderr, "qemu: "+words)
		return 1
	}
	switch {
	case mode == "refuses":
		return refuse("this will not do")
	case mode == "no-hyperv" && strings.Contains(args, "hv-"):
		return refuse("kernel doesn't allow setting HyperV VP_INDEX")
	case mode == "locked":
		return refuse(`Failed to get "write" lock`)
	case mode == "no-memory":
		return refuse("cannot set up guest memory 'pc.ram': Cannot allocate memory")
	case mode == "ports-taken", mode == "one-port-taken" && started() < 2:
		return refuse("-netdev user,id=net0: Could not set up host forwarding rule 'tcp:127.0.0.1:1-:1'")
	case mode == "mute":
		time.Sleep(time.Hour) // an endless select is a deadlock to Go where no signal can come
	}
	conn, err := dialMonitor(args)
	if err != nil {
		return refuse(err.Error())
	}
	fmt.Fprint(conn, hello)
	for in := bufio.NewScanner(conn); in.Scan(); {
		var req struct {
			Execute string `json:"execute"`
			ID      int64  `json:"id"`
		}
		if err := json.Unmarshal(in.Bytes(), &req); err != nil {
			return refuse(err.Error())
		}
		result := `{}`
		if req.Execute == "query-status" {
			result = `{"running": false, "status": "internal-error"}`
		}
		fmt.Fprintf(conn, `{"return": %s, "id": %d}`+"\r\n", result, req.ID)
		if req.Execute == "system_wakeup" { // it was asleep, and has nothing else to do
			fmt.Fprint(conn, `{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}`+"\r\n")
			return 0
		}
		if req.Execute == "cont" {
			if code, ends := playGuest(mode, conn); ends {
				return code
			}
		}
	}
	return 0
}

// playGuest does what follows the start of the guest's processors.
func playGuest(mode string, conn net.Conn) (code int, ends bool) {
	event := func(text string) { fmt.Fprint(conn, text+"\r\n") }
	switch mode {
	case "boots", "no-hyperv", "one-port-taken":
		os.WriteFile("serial.log", []byte("BdsDxe"), 0o600)
	case "pauses":
		fmt.Fprintln(os.Stderr, "KVM internal error. Suberror: 1\nEAX=00000000 EBX=00807000")
		event(`{"event": "STOP"}`)
	case "disk-full":
		event(`{"event": "BLOCK_IO_ERROR", "data": {"device": "disk", "operation": "write", "action": "stop", "nospace": true, "reason": "No space left on device"}}`)
		event(`{"event": "STOP"}`)
	case "disk-error":
		event(`{"event": "BLOCK_IO_ERROR", "data": {"device": "disk", "operation": "read", "action": "stop", "reason": "Input/output error"}}`)
	case "terminated":
		event(`{"event": "SHUTDOWN", "data": {"guest": false, "reason": "host-signal"}}`)
		return 0, true
	case "sleeps":
		event(`{"event": "SUSPEND"}`)
	case "guest-off":
		event(`{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}`)
		return 0, true
	case "aborts":
		fmt.Fprintln(os.Stderr, "qemu: assertion failed")
		return 134, true
	}
	return 0, false
}

func started() int {
	data, _ := os.ReadFile(filepath.Join(os.Getenv(fakeFolder), "starts"))
	return strings.Count(string(data), "\n")
}

// dialMonitor connects to where the arguments say that the monitor is.
func dialMonitor(args string) (net.Conn, error) {
	_, option, _ := strings.Cut(args, "socket,id=monitor,")
	option, _, _ = strings.Cut(option, " ")
	if option == "fd=3" {
		return net.FileConn(os.NewFile(3, "monitor"))
	}
	_, port, _ := strings.Cut(option, "port=")
	return net.Dial("tcp", "127.0.0.1:"+port)
}

// fakeConfig is a machine whose serial log is where the stand-in writes it.
func fakeConfig(t *testing.T) hypervisor.Config {
	t.Helper()
	dir := t.TempDir()
	return hypervisor.Config{
		Name: "m", Dir: dir, CPUs: 1, MemoryMiB: 512, Accelerator: hypervisor.Emulation,
		Disk: touch(t, filepath.Join(dir, "disk.qcow2")), SerialLog: filepath.Join(dir, "serial.log"),
	}
}
