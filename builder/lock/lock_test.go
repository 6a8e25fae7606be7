package lock

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	module  = "h1:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ="
)

func example() *Lock {
	return New(map[string]string{"k8s": "v1.37.2", "cni": "none", "windows": "2022"}, map[string]string{"kubernetes": "v1.37.2", "commit": ""},
		map[string]Input{"iso": {Digest: digestA, Size: 5 << 30, Source: "SERVER EVAL ü.iso"}, "kubernetes k8s.io/kubernetes@v1.37.2": {Digest: module}})
}

const golden = comment + `apiVersion: wbox.dev/v1alpha1
kind: Lock
checksum: sha256:ecd5cc728268ede81b2eee32444fd25c3f45a77f71b369571cb30dc416a2b9e5
selection:
  cni: none
  k8s: v1.37.2
  windows: "2022"
resolved:
  kubernetes: v1.37.2
inputs:
  iso:
    digest: ` + digestA + `
    size: 5368709120
    source: SERVER EVAL ü.iso
  kubernetes k8s.io/kubernetes@v1.37.2:
    digest: ` + module + `
`

func encode(t *testing.T, l *Lock) string {
	t.Helper()
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEncode(t *testing.T) {
	for range 20 { // maps must not shine through
		if got := encode(t, example()); got != golden {
			t.Fatalf("got\n%s\nwant\n%s", got, golden)
		}
	}
	l, err := Parse([]byte(strings.ReplaceAll(golden, "\n", "\r\n")))
	if err != nil || !reflect.DeepEqual(l, example()) {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if l, err := Read(filepath.Join(dir, FileName)); l != nil || err != nil {
		t.Errorf("no file: %v, %v", l, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Read(filepath.Join(dir, "file", FileName)); l != nil || err != nil {
		t.Errorf("no folder: %v, %v", l, err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", "it is empty"},
		"letter":    {"Dear wbox\n", "cannot unmarshal"},
		"box file":  {"apiVersion: wbox.dev/v1alpha1\nkind: Box\n", "kind: Lock"},
		"conflict":  {strings.Replace(golden, "kind: Lock", "<<<<<<< HEAD\nkind: Lock", 1), "line 3"},
		"edited":    {strings.Replace(golden, "cni: none", "cni: calico", 1), "its checksum does not fit its selection"},
		"unknown":   {golden + "more: 1\n", "more"},
		"twice":     {strings.Replace(golden, "  cni: none", "  cni: none\n  cni: none", 1), "already defined"},
		"digest":    {strings.Replace(golden, digestA, "sha256:abc", 1), `the input iso has no digest, but "sha256:abc"`},
		"size":      {strings.Replace(golden, "5368709120", "-1", 1), "the size -1"},
		"control":   {strings.Replace(golden, "SERVER EVAL", `"\e[31m`+`"#`, 1), `"iso" is not printable`},
		"documents": {golden + "---\n" + golden, "more than one document"},
		"large":     {golden + strings.Repeat("#", largest), "too large"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "lock "+path) || fault.ClassOf(err) != fault.Usage {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestIsDigest(t *testing.T) {
	for text, want := range map[string]bool{digestA: true, module: true, "git:0123456789abcdef0123456789abcdef01234567": true,
		"sha512:" + strings.Repeat("ab", 64): true, "sha512:" + strings.Repeat("ab", 32): false, "": false, "v1.37.2": false, digestA + "\n": false, "SHA256" + digestA[6:]: false} {
		if got := IsDigest(text); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestDiff(t *testing.T) {
	now, old := example(), example()
	if got := now.Diff(old); got != nil {
		t.Errorf("no difference, but %v", got)
	}
	now = New(map[string]string{"k8s": "v1.36.3", "windows": "2022", "containerd": "folder"}, map[string]string{"kubernetes": "v1.36.3"}, map[string]Input{
		"iso": {Digest: digestB}, "containerd": {Digest: digestA}})
	var got []string
	for _, c := range now.Diff(old) {
		got = append(got, c.String())
		if c.Selection != (len(got) <= 3) {
			t.Errorf("%v: selection %v", c, c.Selection)
		}
	}
	want := []string{"- cni: none", "+ containerd: folder", "~ k8s: v1.37.2 -> v1.36.3", "~ kubernetes: v1.37.2 -> v1.36.3",
		"+ containerd: " + digestA, "~ iso: " + digestA + " -> " + digestB, "- kubernetes k8s.io/kubernetes@v1.37.2: " + module}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if got := (&Lock{}).Diff(&Lock{}); got != nil {
		t.Errorf("empty locks differ: %v", got)
	}
}

func TestAnotherNameOfTheSameFileChangesNothing(t *testing.T) {
	old, now := example(), example()
	now.Inputs["iso"] = Input{Digest: digestA, Source: "renamed.iso"}
	now.Inputs["new"] = Input{Digest: digestB, Source: "x"}
	now.Keep(old)
	if now.Inputs["iso"] != old.Inputs["iso"] || now.Inputs["new"].Source != "x" {
		t.Errorf("%+v", now.Inputs)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte("apiVersion: wbox.dev/v1alpha1\nkind: Lock\nchecksum: sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\n"))
	f.Add([]byte("a: &a [*a, *a]\n"))
	f.Add([]byte("selection: {1: 2, true: null}\ninputs: {? [x] : y}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Parse(data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("%q is not one line", err)
			}
			return
		}
		out, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("%q was read, what was written of it is not: %v\n%s", data, err, out)
		}
		if d := again.Diff(l); d != nil {
			t.Errorf("%q became another lock: %v", data, d)
		}
		if out2, err := again.Encode(); err != nil || !bytes.Equal(out, out2) {
			t.Errorf("%s\nand then\n%s", out, out2)
		}
	})
}
