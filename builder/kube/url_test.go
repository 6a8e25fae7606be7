package kube

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/report"
)

func TestURL(t *testing.T) {
	b, opts := bucketServer(t)
	folder := opts.BaseURL + "/release/v1.37.2/bin/windows/amd64"
	opts.Version = "v1.37.2"
	for name, text := range map[string]string{"folder": folder + "/", "archive": opts.BaseURL + "/release/v1.37.2/" + (Options{}).archiveOf(windows)} {
		src, ref, err := resolveText(t, text, opts, report.Discard)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bits, err := src.Fetch(t.Context(), ref, t.TempDir(), t.TempDir(), report.Discard)
		if err != nil || ref.Source != "url" || ref.Version != "v1.37.2" || len(bits.Binaries) != 4 {
			t.Fatalf("%s: got %+v, %v", name, bits, err)
		}
		for _, bin := range bits.Binaries {
			if !strings.HasPrefix(bin.From, opts.BaseURL) || ref.Inputs[bin.File] != "sha256:"+bin.SHA256 {
				t.Errorf("%s: got %+v", name, bin)
			}
		}
	}
	// A folder may say its version.
	opts.Version = ""
	if err := os.WriteFile(b.Path("release/v1.37.2"+bin+"version"), []byte("v1.37.2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ref, err := resolveText(t, folder, opts, report.Discard); err != nil || ref.Version != "v1.37.2" {
		t.Errorf("got %+v, %v", ref, err)
	}
}

func TestURLRefuses(t *testing.T) {
	b, opts := bucketServer(t)
	opts.Version = "v1.37.2"
	exe := "release/v1.37.2" + bin + "kubelet.exe"
	page := func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == http.MethodHead {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Log in</title>"))
		return true
	}
	for text, tt := range map[string]struct {
		object string
		fault  kubetest.Fault
		class  fault.Class
		says   string
	}{
		"/release/v1.37.2/bin": {"", nil, fault.Input, "holds no kubelet.exe"},
		"/" + exe:              {"", nil, fault.Input, "lacks kube-log-runner.exe, kube-proxy.exe, kubeadm.exe"},
		"/" + exe + "?page":    {exe, page, fault.Input, "Log in"},
		"/release/v1.37.2" + bin: {exe + ".sha256", func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			_, _ = w.Write([]byte(strings.Repeat("0", 64)))
			return true
		}, fault.Input, "sha256"},
		"/release/v1.37.2/nothing.tar.gz": {"", nil, fault.Input, "nothing.tar.gz"},
		"/release/v1.37.2/x.zip":          {"", nil, fault.Input, "zip"},
	} {
		if tt.object != "" {
			b.Fail(tt.object, tt.fault)
		}
		_, _, err := resolveText(t, opts.BaseURL+text, opts, report.Discard)
		if fault.ClassOf(err) != tt.class || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want it to say %q", text, err, tt.says)
		}
		if tt.object != "" {
			b.Fail(tt.object, nil)
		}
	}
	for _, text := range []string{"ftp://example.com/kubelet.exe", "https:///kubelet.exe", "http://[::1/x"} {
		if _, err := Parse(text, Options{}); fault.ClassOf(err) != fault.Input {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
