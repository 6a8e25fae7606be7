package install

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/answer"
	"github.com/wbox-dev/wbox/scripts/standin/internal/volume"
	"github.com/wbox-dev/wbox/scripts/standin/internal/wim"
)

// archive makes a tar; a name that ends in "/" is a folder, one with "->" a link.
func archive(t *testing.T, names ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		header := &tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg, Size: int64(len(name))}
		if strings.HasSuffix(name, "/") {
			header.Typeflag, header.Size = tar.TypeDir, 0
		} else if from, to, ok := strings.Cut(name, "->"); ok {
			header = &tar.Header{Name: from, Linkname: to, Typeflag: tar.TypeSymlink}
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := w.Write([]byte(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestUnpack(t *testing.T) {
	root := t.TempDir()
	if err := unpack(archive(t, "c/", "c/Program Files/", "c/a b"), root); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "c", "a b")); err != nil || string(data) != "c/a b" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(root, "c", "Program Files")); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	for _, name := range []string{"../x", "/x", "c->/etc"} {
		if err := unpack(archive(t, name), t.TempDir()); err == nil {
			t.Errorf("unpacked %s", name)
		}
	}
	half := archive(t, "c/", "a file").Bytes()
	if err := unpack(bytes.NewReader(half[:700]), t.TempDir()); err == nil {
		t.Error("unpacked half an archive")
	}
}

func TestFormatFAT32(t *testing.T) {
	const size = 1 << 30
	path := filepath.Join(t.TempDir(), "fat")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := formatFAT32(file, size, "WBOX"); err != nil {
		t.Fatal(err)
	}
	if got, want := volume.Probe(file), (volume.Info{Kind: volume.FAT32, Label: "WBOX"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	fsck, err := exec.LookPath("fsck.vfat")
	if err != nil {
		t.Skip("fsck.vfat is not there to check the file system")
	}
	if out, err := exec.Command(fsck, "-n", path).CombinedOutput(); err != nil {
		t.Errorf("fsck.vfat: %v: %s", err, out)
	}
}

func TestFirstState(t *testing.T) {
	plan, err := Plan(usual(), 60<<30)
	if err != nil {
		t.Fatal(err)
	}
	a := &answer.Answer{
		Image: answer.Image{PartitionID: 4}, ComputerName: "*", TimeZone: "UTC", Administrator: &answer.Password{Value: "a"},
		Accounts:      []answer.Account{{Name: "wbox", Groups: []string{"Administrators"}, Password: answer.Password{Value: "p"}}},
		AutoLogon:     answer.AutoLogon{Enabled: true, User: "wbox"},
		SpecializeRun: []answer.Command{{Order: 1, Line: "one"}}, FirstLogon: []answer.Command{{Order: 1, Line: "two"}},
	}
	s := firstState(a, "2022", wim.Image{Build: 20348, Name: "X"}, plan, map[int]string{3: "GUID"}, time.Unix(0, 0))
	if len(s.ComputerName) != 15 || !strings.HasPrefix(s.ComputerName, "WIN-") {
		t.Errorf("computer name %q", s.ComputerName)
	}
	if s.Account("wbox").Password != "p" || s.Account("administrator").Disabled || !s.Account("Guest").Disabled {
		t.Errorf("accounts %+v", s.Accounts)
	}
	if s.Letters["C"] != 4 || s.Volumes[2].GUID != "GUID" || s.AutoLogon != "wbox" {
		t.Errorf("state %+v", s)
	}
	if len(s.Commands) != 2 || s.Commands[0].Line != "one" || s.Commands[0].Pass != "specialize" || s.Commands[1].Line != "two" {
		t.Errorf("commands %+v", s.Commands)
	}
}
