package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestRequestsThatMakeNoSense(t *testing.T) {
	ok := "sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{URL: "https://h/f"}, "is not pinned"},
		{Request{URL: "https://h/f", Digest: "sha256:abc"}, "is no SHA-256 digest"},
		{Request{URL: "https://h/f", Digest: strings.ToUpper(ok)}, "is no SHA-256 digest"},
		{Request{URL: "ftp://h/f", Digest: ok}, "is no http or https URL"},
		{Request{URL: "https:///f", Digest: ok}, "is no http or https URL"},
		{Request{URL: "https://u:secret@h\x7f/f", Digest: ok}, "is no URL"},
		{Request{URL: "https://h/f", Digest: ok, Size: 2, Limit: 1}, "more than the 1"},
	} {
		c.r.Path = filepath.Join(t.TempDir(), "f")
		_, err := new(Client).Get(t.Context(), c.r)
		if fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}

// cutServer serves b, whose first requests are cut after so many bytes each.
func cutServer(t *testing.T, b []byte, cuts ...int) (*httptest.Server, *int) {
	t.Helper()
	n := new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if *n++; *n <= len(cuts) {
			cutAt(w, r, `"e"`, b, cuts[*n-1])
			return
		}
		serve(w, r, `"e"`, b)
	}))
	s.Config.ErrorLog = quiet()
	t.Cleanup(s.Close)
	return s, n
}

// TestLaterProcess goes on with what an earlier call has left.
func TestLaterProcess(t *testing.T) {
	b := content(300_000)
	s, n := cutServer(t, b, 100_000, 0, 0, 0, 0)
	req := Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b)}
	_, err := fastClient(nil).Get(t.Context(), req)
	if fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "goes on from there") {
		t.Fatal(err)
	}
	*n = 5
	res, err := fastClient(nil).Get(t.Context(), req)
	if err != nil || res.Fetched != 200_000 {
		t.Fatalf("%v, fetched %d", err, res.Fetched)
	}
	onlyFile(t, req.Path)
	res, err = fastClient(nil).Get(t.Context(), req)
	if err != nil || res.Fetched != 0 || res.Size != 300_000 || *n != 6 {
		t.Errorf("again: %v, %+v, %d requests", err, res, *n)
	}
}

// TestCompletePart is for a process that died between the last byte and the
// rename: the server answers 416.
func TestCompletePart(t *testing.T) {
	b := content(1000)
	s, n := cutServer(t, b)
	req := Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b)}
	write(t, req.Path+PartSuffix, b)
	write(t, req.Path+PartSuffix+infoSuffix, []byte(`{"url":"`+s.URL+`","etag":"\"e\""}`))
	res, err := fastClient(nil).Get(t.Context(), req)
	if err != nil || res.Fetched != 0 || *n != 1 {
		t.Errorf("%v, fetched %d in %d requests", err, res.Fetched, *n)
	}
	onlyFile(t, req.Path)
}

// TestDamagedPart is for a machine that lost power: what is in the part is not
// what was written.
func TestDamagedPart(t *testing.T) {
	b := content(1000)
	s, _ := cutServer(t, b)
	req := Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b)}
	write(t, req.Path+PartSuffix, make([]byte, 400))
	write(t, req.Path+PartSuffix+infoSuffix, []byte(`{"url":"`+s.URL+`","etag":"\"e\""}`))
	res, err := fastClient(nil).Get(t.Context(), req)
	if err != nil || res.Fetched != 1600 {
		t.Errorf("%v, fetched %d", err, res.Fetched)
	}
	onlyFile(t, req.Path)
	for _, info := range []string{"", "{", `{"url":"x"}`} { // nothing is known about the part
		os.Remove(req.Path)
		write(t, req.Path+PartSuffix, make([]byte, 4000))
		write(t, req.Path+PartSuffix+infoSuffix, []byte(info))
		if _, err := fastClient(nil).Get(t.Context(), req); err != nil {
			t.Errorf("%q: %v", info, err)
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRejected is about a wrong pin: the file is kept, not downloaded again,
// and used once the pin is right.
func TestRejected(t *testing.T) {
	b := content(5000)
	s, n := cutServer(t, b)
	req := Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum([]byte("a typo"))}
	_, err := fastClient(nil).Get(t.Context(), req)
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), sum(b)) || !strings.Contains(err.Error(), req.Path+RejectedSuffix) {
		t.Fatal(err)
	}
	res, err := fastClient(nil).Get(t.Context(), req) // the server is asked whether it has another one by now
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "was not downloaded again") || res.Fetched != 0 || *n != 2 {
		t.Fatalf("%v, fetched %d, %d requests", err, res.Fetched, *n)
	}
	req.Digest = sum(b)
	res, err = fastClient(nil).Get(t.Context(), req)
	if err != nil || res.Fetched != 0 || *n != 2 {
		t.Fatalf("%v, fetched %d, %d requests", err, res.Fetched, *n)
	}
	onlyFile(t, req.Path)
}

// TestRejectedThenMended is for a server that had a broken file for a while.
func TestRejectedThenMended(t *testing.T) {
	b := content(5000)
	now, etag := []byte("broken"), `"1"`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, etag, now) }))
	defer s.Close()
	req := Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b)}
	if _, err := fastClient(nil).Get(t.Context(), req); fault.ClassOf(err) != fault.Input {
		t.Fatal(err)
	}
	now, etag = b, `"2"`
	if _, err := fastClient(nil).Get(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, req.Path)
	now, etag = []byte("broken"), ""
	os.Remove(req.Path)
	for _, want := range []string{"not the pinned", "was not downloaded again"} { // without a validator
		if _, err := fastClient(nil).Get(t.Context(), req); fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTrustOnFirstUse(t *testing.T) {
	b := content(5000)
	s, _ := cutServer(t, b, 2000)
	var warnings []string
	c := fastClient(nil)
	c.Sink = report.SinkFunc(func(e report.Event) {
		if e.Kind == report.Warning {
			warnings = append(warnings, e.Message)
		}
	})
	res, err := c.Get(t.Context(), Request{URL: s.URL + "/f?sig=SECRET", Path: filepath.Join(t.TempDir(), "f"), TrustFirstUse: true})
	if err != nil || res.Digest != sum(b) || res.Fetched != 5000 || res.ETag != `"e"` {
		t.Fatalf("%v %+v", err, res)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], strings.TrimPrefix(sum(b), "sha256:")) || strings.Contains(warnings[0], "SECRET") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestTrustNeedsALength is about bodies whose end can't be told from a cut, and
// about halves that nothing proves to belong together.
func TestTrustNeedsALength(t *testing.T) {
	b := content(5000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { raw(w, "HTTP/1.0 200 OK\r\n\r\n", b) }))
	defer s.Close()
	_, err := fastClient(nil).Get(t.Context(), Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), TrustFirstUse: true})
	if fault.ClassOf(err) != fault.Input || !strings.Contains(err.Error(), "a cut can't be noticed") {
		t.Error(err)
	}
	n := 0
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			cutAt(w, r, "", b, 2000)
			return
		}
		serve(w, r, "", b)
	}))
	defer bare.Close()
	bare.Config.ErrorLog = quiet()
	res, err := fastClient(nil).Get(t.Context(), Request{URL: bare.URL, Path: filepath.Join(t.TempDir(), "f"), TrustFirstUse: true})
	if err != nil || res.Digest != sum(b) || res.Fetched != 7000 {
		t.Errorf("%v %+v: without a validator it must start again", err, res)
	}
}

// TestCancelled ends at once and keeps what has arrived.
func TestCancelled(t *testing.T) {
	b := content(300_000)
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.Write(b[:100_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "f")
	started := time.Now()
	c := &Client{Sink: report.SinkFunc(func(e report.Event) {
		if e.Done > 0 {
			cancel()
		}
	})}
	_, err := c.Get(ctx, Request{URL: s.URL, Path: path, Digest: sum(b)})
	if !errors.Is(err, context.Canceled) || fault.ClassOf(err) != fault.Interrupted || time.Since(started) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(started))
	}
	if _, err := os.Stat(path + PartSuffix); err != nil {
		t.Error(err)
	}
}

// TestFullDisk writes to a device that is always full; nothing is retried.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	b := content(5000)
	s, n := cutServer(t, b)
	path := filepath.Join(t.TempDir(), "f")
	d, err := newDownload(fastClient(nil).withDefaults(), Request{URL: s.URL, Path: path, Digest: sum(b)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.reuse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.part, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Skip(err)
	}
	defer d.close()
	err = d.complete(t.Context())
	if fault.ClassOf(err) != fault.Host || !strings.Contains(err.Error(), "the disk is full while it is written to "+path) ||
		!strings.Contains(err.Error(), "make room for 5000 more bytes") || *n != 1 {
		t.Errorf("%v, %d requests", err, *n)
	}
}

func TestUnwritableFolder(t *testing.T) {
	b := content(10)
	s, n := cutServer(t, b)
	_, err := fastClient(nil).Get(t.Context(), Request{URL: s.URL, Path: filepath.Join(t.TempDir(), "missing", "f"), Digest: sum(b)})
	if fault.ClassOf(err) != fault.Host || *n != 0 {
		t.Errorf("%v, %d requests", err, *n)
	}
}

// TestMirror goes on at another URL with what the first one has sent, which
// only a pin allows.
func TestMirror(t *testing.T) {
	b := content(300_000)
	first, _ := cutServer(t, b, 100_000, 0, 0, 0, 0)
	second, _ := cutServer(t, b)
	req := Request{URL: first.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b)}
	if _, err := fastClient(nil).Get(t.Context(), req); err == nil {
		t.Fatal("the first server is not bad enough")
	}
	req.URL = second.URL
	res, err := fastClient(nil).Get(t.Context(), req)
	if err != nil || res.Fetched != 200_000 {
		t.Errorf("%v, fetched %d", err, res.Fetched)
	}
}

func TestDigest(t *testing.T) {
	a := strings.Repeat("a", 64)
	for in, want := range map[string]string{a: "sha256:" + a, "SHA256:" + strings.ToUpper(a): "sha256:" + a, " " + a + "\n": "sha256:" + a, "": "", a[1:]: "", "sha512:" + a: ""} {
		if got := Digest(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-9/10", "bytes */10", "bytes 5-9/*", "bytes */*", "bytes 9-5/10", "items 0-1/2", "bytes 0-/1", "bytes -1-2/3", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		start, end, total, ok := parseContentRange(s)
		if ok && (start < -1 || end < start || total < -1 || (start < 0) != (end < 0) || start < 0 && total < 0) {
			t.Fatalf("%q: %d-%d/%d", s, start, end, total)
		}
	})
}
