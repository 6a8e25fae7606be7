package gosource

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hello compiles a small program for Windows.
func hello(t *testing.T) []byte {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs go")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/hello\n", "main.go": "package main\n\nfunc main() { println(\"hello\") }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-o", "hello.exe")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "hello.exe"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file whose headers are whole and whose last section is not.
func TestInspectPECutOff(t *testing.T) {
	data := hello(t)
	if err := inspectPE(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	if err := inspectPE(bytes.NewReader(data), int64(len(data))-1024); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v", err)
	}
	if err := inspectBuild(bytes.NewReader(data), Expect{Name: "hello", Packages: []string{"example.com/hello"}}); err != nil {
		t.Error(err)
	}
	if err := inspectBuild(bytes.NewReader(data), Expect{Name: "hello", Packages: []string{"example.com/other"}}); err == nil {
		t.Error("another program is taken")
	}
}

// A stamp is found wherever it lies, across the pieces that are read too.
func TestScanFindsStampsAcrossPieces(t *testing.T) {
	const stamp = "2026-10-27T12:01:04Z"
	for _, at := range []int{0, 1<<20 - 7, 1<<20 + 249, 2<<20 - 3, 3<<20 - len(stamp)} {
		data := make([]byte, 3<<20)
		copy(data[at:], stamp)
		sum, err := Scan(bytes.NewReader(data), Expect{Stamps: []string{stamp}})
		want := sha256.Sum256(data)
		if err != nil || sum != hex.EncodeToString(want[:]) {
			t.Errorf("at %d: got %s, %v", at, sum, err)
		}
	}
	if _, err := Scan(bytes.NewReader(make([]byte, 3<<20)), Expect{Stamps: []string{stamp}}); err == nil {
		t.Error("found a stamp in zeros")
	}
}

// A program without a version package can't be stamped; one with it must be.
func TestScanDemandsStampsIfIn(t *testing.T) {
	for text, want := range map[string]bool{
		"\x00example.com/runner.main":                      true,
		"\x00example.com/a/version.Get":                    false,
		"\x00example.com/b/version.Get\x00DATE":            false,
		"\x00example.com/b/version.Get\x00DATE\x00v1.37.2": true,
	} {
		_, err := Scan(strings.NewReader(text), Expect{Stamps: []string{"DATE"}, Standalone: "v1.37.2", IfIn: []string{"example.com/a/version", "example.com/b/version"}})
		if (err == nil) != want {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestOccursAlone(t *testing.T) {
	for text, want := range map[string]bool{
		"x k8s.io/kubernetes@v1.37.2/cmd":               false,
		"mod\tk8s.io/kubernetes\tv1.37.2\th1:":          false,
		"\x00v1.37.2\x00":                               true,
		"@v1.37.2 and then Kubernetes v1.37.2 as such.": true,
		"":           false,
		"nothing":    false,
		"\x00v1.37.": false,
	} {
		if got := occursAlone([]byte(text), "v1.37.2"); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add([]byte("MZ"))
	f.Add([]byte("\x7fELF"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if inspect(bytes.NewReader(data), int64(len(data)), Expect{Name: "kubelet"}) == nil {
			t.Error("accepted something that is not Go")
		}
		_ = inspectPE(bytes.NewReader(data), int64(len(data)))
		_ = inspectBuild(bytes.NewReader(data), Expect{Name: "kubelet"})
	})
}
