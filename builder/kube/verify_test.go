package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/wine"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

func TestVerify(t *testing.T) {
	dir := kubetest.FixtureOf(t, t.TempDir(), kubetest.Spec{Version: "v1.37.2", Commit: fixtureCommit})
	good, err := os.ReadFile(filepath.Join(dir, "kubelet.exe"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(data []byte) string {
		path := filepath.Join(t.TempDir(), "kubelet.exe")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	peAt := int(good[60]) | int(good[61])<<8
	patched := func(at int, change ...byte) string {
		data := bytes.Clone(good)
		copy(data[peAt+at:], change)
		return file(data)
	}
	elf := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x3e\x00" + strings.Repeat("\x00", 2<<20)

	tests := map[string]struct {
		path string
		want Expect
		says string // empty: passes
	}{
		"kubelet":          {filepath.Join(dir, "kubelet.exe"), Expect{Name: Kubelet, Stamps: []string{fixtureCommit}, Standalone: "v1.37.2"}, ""},
		"kube-log-runner":  {filepath.Join(dir, "kube-log-runner.exe"), Expect{Name: KubeLogRunner}, ""},
		"other program":    {filepath.Join(dir, "kubeadm.exe"), Expect{Name: Kubelet}, "built from k8s.io/kubernetes/cmd/kubeadm"},
		"other commit":     {filepath.Join(dir, "kubelet.exe"), Expect{Name: Kubelet, Stamps: []string{"fedcba"}}, `"fedcba" does not occur`},
		"other version":    {filepath.Join(dir, "kubelet.exe"), Expect{Name: Kubelet, Standalone: "v1.36.3"}, "v1.36.3"},
		"other toolchain":  {filepath.Join(dir, "kubelet.exe"), Expect{Name: Kubelet, GoVersion: "go1.2"}, "not with go1.2"},
		"other module":     {filepath.Join(dir, "kubelet.exe"), Expect{Name: Kubelet, MainVersion: "v1.37.2"}, "not from v1.37.2"},
		"other digest":     {filepath.Join(dir, "kubelet.exe"), Expect{Name: Kubelet, MainSum: "h1:x"}, "not h1:x"},
		"linux":            {file([]byte(elf)), Expect{Name: Kubelet}, "a Linux program (ELF, amd64)"},
		"windows arm64":    {patched(4, 0x64, 0xAA), Expect{Name: Kubelet}, "for arm64, not for amd64"},
		"windows 386":      {patched(4, 0x4C, 0x01), Expect{Name: Kubelet}, "for 386, not for amd64"},
		"26 KB":            {file(good[:26<<10]), Expect{Name: Kubelet}, "26624 bytes are too few"},
		"cut off":          {file(good[:len(good)-4096]), Expect{Name: Kubelet}, "cut off"},
		"html":             {file([]byte("\xef\xbb\xbf\n<!DOCTYPE HTML><html>")), Expect{Name: Kubelet}, "an HTML page"},
		"empty":            {file(nil), Expect{Name: Kubelet}, "it is empty"},
		"text":             {file([]byte("hello")), Expect{Name: Kubelet}, `begins with "hello"`},
		"only MZ":          {file(append([]byte("MZ"), make([]byte, 2<<20)...)), Expect{Name: Kubelet}, "is damaged"},
		"library":          {patched(4+19, good[peAt+4+19]|0x20), Expect{Name: Kubelet}, "a Windows library"},
		"graphical":        {patched(24+68, 2), Expect{Name: Kubelet}, "not a console program"},
		"not Go":           {file(append(processPrngProgram(), make([]byte, 2<<20)...)), Expect{Name: Kubelet}, "no Go build info"},
		"folder":           {t.TempDir(), Expect{Name: Kubelet}, "no regular file"},
		"lfs":              {file([]byte("version https://git-lfs.github.com/spec/v1\n")), Expect{Name: Kubelet}, "Git LFS"},
		"other flag named": {file(nil), Expect{Name: Kubelet, Field: "--other"}, "--other"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bin, err := Verify(tt.path, tt.want)
			if tt.says != "" {
				if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.path) {
					t.Errorf("got %v, want a refusal that says %q", err, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, _ := os.ReadFile(tt.path)
			sum := sha256.Sum256(data)
			want := Binary{Name: tt.want.Name, File: tt.want.Name + ".exe", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data)), From: tt.path}
			if bin != want {
				t.Errorf("got %+v, want %+v", bin, want)
			}
		})
	}
}

// processPrngProgram is a valid Windows program that is not from Go.
func processPrngProgram() []byte {
	data := wine.PrngDLL()
	data[64+4+19] &^= 0x20 // a program, not a library
	return data
}
