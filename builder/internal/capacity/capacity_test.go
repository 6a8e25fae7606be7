package capacity

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestDiskOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	a, err := Disk(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.Free < 1<<20 || a.Total < a.Free || a.Volume == "" {
		t.Errorf("%+v", a)
	}
	b, err := Disk(filepath.Join(dir, "not", "made", "yet"))
	if err != nil || b.Volume != a.Volume {
		t.Errorf("below it: %+v %v, want volume %s", b, err, a.Volume)
	}
}

func TestMemoryOfThisMachine(t *testing.T) {
	m, err := RAM()
	if err != nil {
		t.Fatal(err)
	}
	if m.Total < 64<<20 || m.Available > m.Total || (runtime.GOOS == "linux" && m.Available == 0) {
		t.Errorf("%+v", m)
	}
}

func TestParseMeminfo(t *testing.T) {
	m, err := parseMeminfo("MemTotal:       24683648 kB\nMemFree:   100 kB\nMemAvailable:   23871488 kB\n")
	if err != nil || m != (Memory{Available: 23871488 << 10, Total: 24683648 << 10}) {
		t.Errorf("%+v %v", m, err)
	}
	for _, bad := range []string{"", "MemTotal: 5 kB\n", "MemTotal: x kB\nMemAvailable: 5 kB\n", "MemTotal: -5 kB\nMemAvailable: 5 kB\n"} {
		if m, err := parseMeminfo(bad); err == nil {
			t.Errorf("%q: %+v", bad, m)
		}
	}
}

func FuzzMeminfo(f *testing.F) {
	f.Add("MemTotal: 5 kB\nMemAvailable: 3 kB\n")
	f.Add("MemTotal:9223372036854775807 kB\nMemAvailable: 1 kB")
	f.Add("0::/user.slice\n")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := parseMeminfo(text); err == nil && (m.Total < 0 || m.Available < 0) {
			t.Errorf("%+v", m)
		}
		if n := parseStat(text, "inactive_file"); n < 0 {
			t.Errorf("stat %d", n)
		}
		parseCgroup(text)
	})
}
