package media

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestClosure(t *testing.T) {
	index := map[string]string{"a": "a.ko", "b_c": "b-c.ko", "d": "d.ko"}
	depends := func(path string) ([]string, error) {
		return map[string][]string{"a.ko": {"b-c", "d"}, "b-c.ko": {"d"}}[path], nil
	}
	got, err := closure(index, []string{"a", "d"}, depends)
	if want := []string{"d.ko", "b-c.ko", "a.ko"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := closure(index, []string{"missing"}, depends); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing module: %v", err)
	}
	broken := errors.New("broken")
	if _, err := closure(index, []string{"a"}, func(string) ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a broken module: %v", err)
	}
}

func TestCPIO(t *testing.T) {
	cpio, err := exec.LookPath("bsdtar")
	if err != nil {
		t.Skip("bsdtar is not there to read the archive")
	}
	var b bytes.Buffer
	if err := writeCPIO(&b, []cpioFile{{name: "dir/", mode: 0o755}, {name: "dir/file", mode: 0o644, data: []byte("12345")}}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cpio, "-tvf", "-")
	cmd.Stdin = &b
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "drwxr-xr-x") || !strings.HasPrefix(lines[1], "-rw-r--r--") || !strings.Contains(lines[1], " 5 ") {
		t.Errorf("the archive holds\n%s", out)
	}
}

func TestReleaseOf(t *testing.T) {
	for name, build := range map[string]int{"": 20348, "2022": 20348, "2025": 26100} {
		if r, err := releaseOf(name); err != nil || r.build != build {
			t.Errorf("%q: %+v, %v", name, r, err)
		}
	}
	if _, err := releaseOf("2019"); err == nil {
		t.Error("2019 is taken")
	}
}

// descriptor is a UDF descriptor with right checksums.
func descriptor(id uint16, fill byte) []byte {
	b := bytes.Repeat([]byte{fill}, 2048)
	clear(b[:16])
	binary.LittleEndian.PutUint16(b, id)
	binary.LittleEndian.PutUint16(b[10:], 496)
	binary.LittleEndian.PutUint16(b[8:], crcITU(b[16:512]))
	b[4] = tagChecksum(b)
	return b
}

func TestFixUDF(t *testing.T) {
	// The check value of this CRC for "123456789".
	if got := crcITU([]byte("123456789")); got != 0x31c3 {
		t.Errorf("crc %#x", got)
	}
	b := descriptor(261, 7)
	if !fixUDF(b) {
		t.Fatal("a file entry is not known")
	}
	for _, at := range []int{72, 84, 96} {
		if !bytes.Equal(b[at:at+12], udfTime()) {
			t.Errorf("the time at %d is % x", at, b[at:at+12])
		}
	}
	if crcITU(b[16:512]) != binary.LittleEndian.Uint16(b[8:]) || tagChecksum(b) != b[4] {
		t.Error("the checksums are wrong afterwards")
	}
	other := descriptor(261, 7)
	other[100]++
	for name, b := range map[string][]byte{"zeros": make([]byte, 2048), "another kind": descriptor(8, 7), "wrong checksum": other} {
		before := bytes.Clone(b)
		if fixUDF(b) || !bytes.Equal(b, before) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestFixXMLTimes(t *testing.T) {
	wide := func(s string) []byte {
		return []byte(strings.Join(strings.Split(s, ""), "\x00") + "\x00")
	}
	xml := wide("<HIGHPART>0x01DD819B</HIGHPART><LOWPART>0xB81DAB96</LOWPART><X>0x12345678</X>")
	fixXMLTimes(xml)
	if want := wide("<HIGHPART>0x01DC7AB1</HIGHPART><LOWPART>0x92810000</LOWPART><X>0x12345678</X>"); !bytes.Equal(xml, want) {
		t.Errorf("%s", strings.ReplaceAll(string(xml), "\x00", ""))
	}
}

func TestFixEntriesRefuses(t *testing.T) {
	entry := func(length, children uint64) []byte {
		b := make([]byte, 120)
		binary.LittleEndian.PutUint64(b, length)
		binary.LittleEndian.PutUint64(b[16:], children)
		return b
	}
	for name, meta := range map[string][]byte{"too long": entry(200, 0), "too short": entry(50, 0), "back": entry(104, 0)[:104], "outside": entry(104, 999)} {
		if name == "back" {
			meta = append(make([]byte, 8), entry(104, 4)...)
		}
		start := len(meta) % 120
		if err := fixEntries(meta, start); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPowerShellRoot(t *testing.T) {
	for _, dll := range []string{"pwsh.dll", "app/pwsh.dll", "pwsh-7/app/pwsh.dll"} {
		dir := t.TempDir()
		deps := filepath.Join(dir, strings.TrimSuffix(dll, "dll")+"deps.json")
		if err := os.MkdirAll(filepath.Dir(deps), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{filepath.Join(dir, dll): "", deps: `{"targets":{"x":{"pwsh/7.6.9.500":{}}}}`} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		root, err := powershellRoot(dir)
		if err != nil {
			t.Errorf("%s: %v", dll, err)
			continue
		}
		if version, err := powershellVersion(root); err != nil || version != "7.6.9" {
			t.Errorf("%s: %q, %v", dll, version, err)
		}
	}
	if _, err := powershellRoot(t.TempDir()); err == nil {
		t.Error("an empty folder is taken for PowerShell")
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"c.iso", "a.iso", "b.iso", "other"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		used := epoch.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(path, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(dir, 2); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"a.iso", "b.iso", "other"}; !reflect.DeepEqual(left, want) {
		t.Errorf("%v are left, not %v", left, want)
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDeterministic builds twice, at different times and once under a relative
// path, and compares.
func TestDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the tools that build a medium")
	}
	if missing := Missing(); len(missing) > 0 {
		t.Skipf("this machine lacks %s", strings.Join(missing, ", "))
	}
	var sums [2][32]byte
	for i := range sums {
		out := filepath.Join(t.TempDir(), "medium.iso")
		given := out
		if i == 1 {
			rel, err := filepath.Rel(mustGetwd(t), out)
			if err != nil {
				t.Fatal(err)
			}
			given = rel
		}
		if err := Build(t.Context(), Options{Release: "2025"}, given); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(data)
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds differ: %x, %x", sums[0], sums[1])
	}
}
