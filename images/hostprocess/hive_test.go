package hostprocess

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func created() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// The cells must fill the bin, or Windows takes the hive for damaged.
func TestHiveCells(t *testing.T) {
	h := hive(created())
	if len(h) != 8192 {
		t.Fatalf("%d bytes", len(h))
	}
	bin := h[4096:]
	var used, free int
	at := 0x20
	for at < len(bin) {
		size := int(int32(binary.LittleEndian.Uint32(bin[at:])))
		switch {
		case size < 0:
			used++
			size = -size
		default:
			free++
		}
		if size < 8 || size%8 != 0 {
			t.Fatalf("a cell of %d bytes at %#x", size, at)
		}
		at += size
	}
	if at != len(bin) || used != 2 || free != 1 {
		t.Errorf("%d used and %d free cells end at %#x", used, free, at)
	}
}

// Two readers that others wrote open the hive.
func TestHiveIsReadByOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "SYSTEM")
	if err := os.WriteFile(path, hive(created()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"hivexml", path}, `<node name="wbox-empty" root="1">`},
		{[]string{"hivexml", path}, "2026-08-01T12:00:00Z"},
		{[]string{"reglookup", "-s", path}, "/,KEY,"},
		{[]string{"reglookup", "-s", path}, "S-1-5-32-544"},
	} {
		if _, err := exec.LookPath(c.argv[0]); err != nil {
			t.Skipf("needs %s (Debian: libhivex-bin, reglookup)", c.argv[0])
		}
		out, err := exec.CommandContext(t.Context(), c.argv[0], c.argv[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v, lacks %q:\n%s", c.argv, err, c.want, out)
		}
	}
}
