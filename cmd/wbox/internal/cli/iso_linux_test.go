package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

// terminal returns the two ends of a pseudo-terminal.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestLicencePrompt is a person who is asked at a terminal: no, then nothing
// but Ctrl-C, then yes, and never again.
func TestLicencePrompt(t *testing.T) {
	dir := t.TempDir()
	if err := isotest.WriteFake(filepath.Join(dir, "w.iso"), isotest.Editions("2022"), nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "w.iso"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer s.Close()
	table, err := json.Marshal([]map[string]any{{"name": "w", "release": "2022", "version": "10.0.20348.587", "editions": []string{"core"},
		"sha256": fmt.Sprintf("%x", sha256.Sum256(b)), "size": len(b), "path": "/w.iso", "page": "https://example.org/w", "licence": "an evaluation licence"}})
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "table.json")
	if err := os.WriteFile(own, table, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tableEnv, own)
	t.Setenv("TERM", "xterm")
	for _, c := range []struct {
		answer string // "" is Ctrl-C
		code   int
		text   string
	}{
		{"no\n", 3, "w: is downloaded only once its licence is accepted"},
		{"\n", 3, "w: is downloaded only once its licence is accepted"},
		{"", 130, "interrupted"},
		{"yes\n", 0, "The licence is at https://example.org/w"},
		{"never asked", 0, ""},
	} {
		person, program := terminal(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		screen := make(chan string, 1)
		go func() {
			var seen bytes.Buffer
			buf := make([]byte, 4096)
			for asked := false; ; {
				n, err := person.Read(buf)
				seen.Write(buf[:n])
				if !asked && strings.Contains(seen.String(), "type yes and press Enter") {
					asked = true
					if c.answer == "" {
						cancel()
					} else if _, err := io.WriteString(person, c.answer); err != nil {
						t.Error(err)
					}
				}
				if err != nil { // the other end was closed
					screen <- seen.String()
					return
				}
			}
		}()
		var out bytes.Buffer
		code := Main(ctx, []string{"iso", "fetch", "w", "--store", filepath.Join(dir, "store"), "--iso-base-url", s.URL}, program, &out, program)
		interrupted := errors.Is(ctx.Err(), context.Canceled)
		cancel()
		if c.answer == "" { // Main's reader still waits, which would keep the terminal open
			if _, err := io.WriteString(person, "\n"); err != nil {
				t.Error(err)
			}
		}
		program.Close()
		shown := <-screen
		if code != c.code || !strings.Contains(shown, c.text) || (c.answer == "") != interrupted || (code == 0) != strings.Contains(out.String(), "w sha256:") {
			t.Errorf("%q: code %d, want %d; shown:\n%s\nprinted: %s", c.answer, code, c.code, shown, out.String())
		}
		if c.answer == "never asked" && strings.Contains(shown, "press Enter") {
			t.Error("asked again")
		}
	}
}
