package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someConstants = `package constants

import "fmt"

const (
	// DefaultEtcdVersion is "9.9.9-9", says a comment.
	DefaultEtcdVersion = "3.7.0-0"
	CoreDNSVersion = older
	older, unrelated = "v1.14.6", 7
	PauseVersion = ("3.10.2")
)

var (
	name = fmt.Sprintf("x-%s", CoreDNSVersion)
	SupportedEtcdVersion = map[uint8]string{
		34: "3.5.24-0",
		35: DefaultEtcdVersion,
		37: "3.6.8-0",
	}
)
`

func TestParseImageTags(t *testing.T) {
	for version, etcd := range map[string]string{
		"v1.37.2": "3.6.8-0", "v1.35.0": "3.7.0-0", "v1.34.9": "3.5.24-0",
		"v1.38.0-alpha.1.5+0123456789abcd": "3.6.8-0", // newer than the table: its last row
		"v1.20.1":                          "3.5.24-0",
		"v1.36.0":                          "3.7.0-0", // a hole in the table: the default
	} {
		got, err := parseImageTags([]byte(someConstants), version)
		if err != nil || got != (ImageTags{Etcd: etcd, CoreDNS: "v1.14.6", Pause: "3.10.2"}) {
			t.Errorf("%s: %+v, %v", version, got, err)
		}
	}
}

func TestParseImageTagsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no constant":  {"CoreDNSVersion = older", "", "no CoreDNSVersion"},
		"no string":    {`= "3.7.0-0"`, "= 7", "no string"},
		"a call":       {`older, unrelated = "v1.14.6", 7`, "older = unrelated()", "no string"},
		"a circle":     {`older, unrelated = "v1.14.6", 7`, "older = older", "no string"},
		"no Go":        {"const (", "const ((", "constants.go"},
		"a named key":  {"34:", "minor:", "without numbers"},
		"no key":       {`34: "3.5.24-0"`, `"3.5.24-0"`, "that is none"},
		"a huge minor": {"34:", "99999999999999999999:", "etcd versions"},
	} {
		if !strings.Contains(someConstants, c.old) {
			t.Fatalf("%s: nothing is replaced", name)
		}
		_, err := parseImageTags([]byte(strings.Replace(someConstants, c.old, c.new, 1)), "v1.37.2")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParseImageList(t *testing.T) {
	const list = "registry.k8s.io/kube-apiserver:v1.37.2\nregistry.k8s.io/coredns/coredns:v1.14.6\nregistry.k8s.io/pause:3.10.2\nregistry.k8s.io/etcd:3.7.0-0\n"
	got, err := parseImageList(list)
	if err != nil || got != (ImageTags{Etcd: "3.7.0-0", CoreDNS: "v1.14.6", Pause: "3.10.2"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseImageList(strings.Replace(list, "pause", "paws", 1)); err == nil || !strings.Contains(err.Error(), "lists no pause") {
		t.Errorf("%v", err)
	}
}

// TestRealImageTags reads the constants of the releases that this machine's
// module cache has, and compares them with what was published of those.
func TestRealImageTags(t *testing.T) {
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip("no module cache is known here")
		}
		cache = filepath.Join(home, "go", "pkg", "mod")
	}
	seen := 0
	for version, want := range map[string]ImageTags{
		"v1.29.6":        {Etcd: "3.5.12-0", CoreDNS: "v1.11.1", Pause: "3.9"},
		"v1.33.13":       {Etcd: "3.5.24-0", CoreDNS: "v1.12.0", Pause: "3.10"},
		"v1.34.4":        {Etcd: "3.6.5-0", CoreDNS: "v1.12.1", Pause: "3.10.1"},
		"v1.36.3":        {Etcd: "3.6.8-0", CoreDNS: "v1.14.2", Pause: "3.10.2"},
		"v1.37.2":        {Etcd: "3.7.0-0", CoreDNS: "v1.14.6", Pause: "3.10.2"},
		"v1.38.0-beta.0": {Etcd: "3.7.1-0", CoreDNS: "v1.15.0", Pause: "3.10.2"},
	} {
		data, err := os.ReadFile(filepath.Join(cache, "k8s.io", "kubernetes@"+version, filepath.FromSlash(constantsFile)))
		if err != nil {
			continue
		}
		seen++
		if got, err := parseImageTags(data, version); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", version, got, err, want)
		}
	}
	if seen == 0 {
		t.Skip("no release of Kubernetes is in the module cache")
	}
	t.Logf("%d releases", seen)
}

func FuzzParseImageTags(f *testing.F) {
	f.Add([]byte(someConstants), "v1.37.2")
	f.Add([]byte("package constants"), "v1.0")
	f.Fuzz(func(t *testing.T, source []byte, version string) {
		got, err := parseImageTags(source, version)
		if err == nil && got.CoreDNS == "" && got.Pause == "" && got.Etcd == "" && len(source) < 40 {
			t.Errorf("nothing was read of %q", source)
		}
	})
}
