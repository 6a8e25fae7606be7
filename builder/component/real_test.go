package component

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// TestReal compiles real sources, one after the other: WBOX_TEST_COMPONENTS
// lists them with blanks between, such as
//
//	containerd=2.3.4 containerd=git:https://github.com/containerd/containerd.git@main cni=antrea@v2.7.0
//
// It takes minutes each.
func TestReal(t *testing.T) {
	list := os.Getenv("WBOX_TEST_COMPONENTS")
	if list == "" {
		t.Skip("compiles real projects: set WBOX_TEST_COMPONENTS, such as containerd=2.3.4")
	}
	opts := Options{CacheDir: os.Getenv("WBOX_TEST_CACHE")}
	if opts.CacheDir == "" {
		opts.CacheDir = t.TempDir()
	}
	for _, item := range strings.Fields(list) {
		t.Run(item, func(t *testing.T) {
			flag, text, _ := strings.Cut(item, "=")
			parse := ParseCNI
			if flag == "containerd" {
				parse = ParseContainerd
			}
			r, err := parse(text)
			if err != nil {
				t.Fatal(err)
			}
			src, err := r.Source(opts)
			if err != nil {
				t.Fatal(err)
			}
			sink := report.SinkFunc(func(e report.Event) {
				if e.Kind == report.Warning || e.Kind == report.Note {
					t.Log(e.Message)
				}
			})
			start := time.Now()
			ref, err := src.Resolve(t.Context(), sink)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("resolved in %s: %+v", time.Since(start).Round(time.Millisecond), ref)
			var first string
			for range 2 {
				start, before := time.Now(), childCPU(t)
				bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), sink)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("fetched in %s, %s CPU", time.Since(start).Round(time.Second), (childCPU(t) - before).Round(time.Second))
				digests := ""
				for _, b := range bits.Binaries {
					t.Logf("%-30s %9d %s %s", b.File, b.Size, b.SHA256[:12], b.From)
					digests += b.SHA256
				}
				if first == "" {
					first = digests
				}
				if digests != first {
					t.Error("the second compile has other bytes")
				}
			}
		})
	}
}
