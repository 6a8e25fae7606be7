package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// fakeQEMU is the folder in which this test binary plays QEMU, where it is
// called so: a machine on whose WinRM port a stranger answers. It leaves its
// process id there.
const fakeQEMU = "WBOX_TEST_FAKE_QEMU"

// asQEMU plays QEMU if this process is to, and then does not return.
func asQEMU() {
	dir := os.Getenv(fakeQEMU)
	if dir == "" || !strings.HasPrefix(filepath.Base(os.Args[0]), "qemu-system") {
		return
	}
	if err := playQEMU(dir, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "qemu:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func playQEMU(dir string, args []string) error {
	line := strings.Join(args, " ")
	if line == "--version" {
		fmt.Println("QEMU emulator version 7.2.22")
		return nil
	}
	if strings.Contains(line, "-accel kvm") || strings.Contains(line, "-accel hvf") {
		return errors.New("this host can only emulate")
	}
	if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(fmt.Sprint(os.Getpid())), 0o600); err != nil {
		return err
	}
	if _, path, ok := strings.Cut(line, "append=on,path="); ok {
		path, _, _ = strings.Cut(path, " ")
		if err := os.WriteFile(path, []byte("firmware\n"), 0o600); err != nil {
			return err
		}
	}
	if err := strangers(line); err != nil {
		return err
	}
	return monitor(line)
}

// strangers listens on the ports that lead into the guest, with a certificate
// that is not the guest's.
func strangers(line string) error {
	for _, forward := range strings.Split(line, "hostfwd=tcp:")[1:] {
		address, _, _ := strings.Cut(forward, "-")
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("Could not set up host forwarding rule: %w", err)
		}
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.Listener = l
		server.StartTLS()
	}
	return nil
}

// monitor answers questions until wbox hangs up.
func monitor(line string) error {
	conn, err := net.FileConn(os.NewFile(3, "monitor"))
	if err != nil {
		return err
	}
	fmt.Fprint(conn, `{"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": []}}`+"\r\n")
	for in := bufio.NewScanner(conn); in.Scan(); {
		var q struct {
			Execute   string
			ID        int64
			Arguments struct{ Filename string }
		}
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		result := "{}"
		switch q.Execute {
		case "query-blockstats":
			result = "[]"
		case "query-vnc":
			result = fmt.Sprintf(`{"enabled": %v, "host": "127.0.0.1", "service": "5999"}`, strings.Contains(line, "-vnc 127.0.0.1:"))
		case "screendump":
			if err := os.WriteFile(q.Arguments.Filename, []byte("P6\n1 1\n255\n\x00\x00\x00"), 0o600); err != nil {
				return err
			}
		}
		fmt.Fprintf(conn, `{"return": %s, "id": %d}`+"\r\n", result, q.ID)
	}
	return nil
}
