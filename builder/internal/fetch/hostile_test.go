package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// content is the file that the servers of the tests have.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

// serve is an honest answer, also to ranges.
func serve(w http.ResponseWriter, r *http.Request, etag string, b []byte) {
	w.Header().Set("ETag", etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// hang up in the middle of an answer.
func hangUp(w http.ResponseWriter) {
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// cutAt answers honestly, but the connection ends after n bytes of the body.
func cutAt(w http.ResponseWriter, r *http.Request, etag string, b []byte, n int) {
	serve(&cutter{ResponseWriter: w, left: n}, r, etag, b)
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		c.ResponseWriter.Write(p[:c.left])
		hangUp(c.ResponseWriter)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// fastClient waits for nothing, and remembers for how long it should have.
func fastClient(waits *[]time.Duration) *Client {
	return &Client{Backoff: time.Millisecond, StallWindow: 300 * time.Millisecond, MaxWait: 200 * time.Second, wait: func(ctx context.Context, d time.Duration) error {
		if waits != nil {
			*waits = append(*waits, d)
		}
		return ctx.Err()
	}}
}

func TestHostileServers(t *testing.T) {
	b := content(300_000)
	for _, c := range behaviours() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.answer(w, r, int(n.Add(1)), b)
			}))
			defer server.Close()
			server.Config.ErrorLog = quiet()
			req := Request{URL: server.URL + "/f.iso", Path: filepath.Join(t.TempDir(), "final"), Digest: sum(b), Field: "--iso", Fix: "see the mirror"}
			if c.request != nil {
				c.request(&req)
			}
			res, err := fastClient(nil).Get(t.Context(), req)
			got, readErr := os.ReadFile(req.Path)
			if c.tries != 0 && int(n.Load()) != c.tries {
				t.Errorf("%d requests, want %d", n.Load(), c.tries)
			}
			if c.class == 0 {
				if err != nil || !bytes.Equal(got, b) || res.Digest != sum(b) || res.Size != int64(len(b)) {
					t.Fatalf("error %v, result %+v, %d bytes", err, res, len(got))
				}
				onlyFile(t, req.Path)
				return
			}
			var p *fault.Problem
			if !errors.As(err, &p) || p.Class != c.class || !strings.Contains(err.Error(), c.err) || p.Fix == "" {
				t.Errorf("error %v of class %d, want %q of class %d, with a fix", err, fault.ClassOf(err), c.err, c.class)
			}
			if !errors.Is(readErr, fs.ErrNotExist) {
				t.Errorf("there is a file under the final name: %d bytes, %v", len(got), readErr)
			}
		})
	}
	if n := len(behaviours()); n < 25 {
		t.Errorf("only %d behaviours", n)
	}
}

// onlyFile checks that nothing lies beside the file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the file: %v, %v", entries, err)
	}
}

// TestCutAnywhere cuts at a hundred random offsets: no byte is fetched twice.
func TestCutAnywhere(t *testing.T) {
	b := content(1 << 20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		var cuts []int
		for range 1 + r.IntN(4) {
			cuts = append(cuts, r.IntN(len(b)/5))
		}
		n := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n++; n <= len(cuts) {
				cutAt(w, r, `"e"`, b, cuts[n-1])
				return
			}
			serve(w, r, `"e"`, b)
		}))
		server.Config.ErrorLog = quiet()
		path := filepath.Join(t.TempDir(), "f")
		res, err := fastClient(nil).Get(t.Context(), Request{URL: server.URL, Path: path, Digest: sum(b)})
		server.Close()
		if err != nil || res.Fetched != int64(len(b)) {
			t.Fatalf("run %d, cut at %v: %v, fetched %d of %d", i, cuts, err, res.Fetched, len(b))
		}
	}
}

// TestNoBitPasses flips one random bit in each of a thousand downloads (a
// hundred with -short).
func TestNoBitPasses(t *testing.T) {
	b := content(2000)
	r := rand.New(rand.NewPCG(3, 4))
	flip := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := bytes.Clone(b)
		c[flip/8] ^= 1 << (flip % 8)
		serve(w, r, "", c)
	}))
	defer server.Close()
	dir := t.TempDir()
	downloads := 1000
	if testing.Short() {
		downloads = 100
	}
	for i := range downloads {
		flip = r.IntN(len(b) * 8)
		_, err := fastClient(nil).Get(t.Context(), Request{URL: fmt.Sprintf("%s/%d", server.URL, i), Path: filepath.Join(dir, fmt.Sprint(i)), Digest: sum(b)})
		if fault.ClassOf(err) != fault.Input {
			t.Fatalf("bit %d: %v", flip, err)
		}
	}
}

func TestProgressAndWaits(t *testing.T) {
	b := content(300_000)
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n++; n {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			serve(w, r, `"e"`, b)
		}
	}))
	defer server.Close()
	var waits []time.Duration
	c := fastClient(&waits)
	var last report.Event
	c.Sink = report.SinkFunc(func(e report.Event) {
		if e.Kind == report.StageProgress {
			last = e
		}
	})
	if _, err := c.Get(t.Context(), Request{URL: server.URL, Path: filepath.Join(t.TempDir(), "f"), Digest: sum(b), Name: "the ISO"}); err != nil {
		t.Fatal(err)
	}
	if len(waits) != 1 || waits[0] < 7*time.Second || waits[0] > 9*time.Second {
		t.Errorf("waited %v, want the 7 s that the server asked for", waits)
	}
	if last.Done != int64(len(b)) || last.Total != int64(len(b)) || last.Message != "downloading the ISO" {
		t.Errorf("the last progress was %+v", last)
	}
}
