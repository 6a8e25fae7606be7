package fetch

import (
	"bytes"
	"compress/gzip"
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

// behaviour is one way in which a server answers: n counts its requests from 1.
type behaviour struct {
	name    string
	answer  func(w http.ResponseWriter, r *http.Request, n int, b []byte)
	request func(*Request)
	class   fault.Class // 0: the right file must be there
	err     string
	tries   int // requests that the server must have seen; 0 for any number
}

func behaviours() []behaviour {
	const etag = `"v1"`
	size := len(content(300_000))
	return []behaviour{
		{name: "honest", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) { serve(w, r, etag, b) }},
		{name: "cut once", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				cutAt(w, r, etag, b, 100_000)
			}
			serve(w, r, etag, b)
		}},
		{name: "cut again and again, always a little further", answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			cutAt(w, r, etag, b, 20_000)
		}},
		{name: "cut before the first byte, for ever", class: fault.Network, err: "in 5 tries", tries: 5, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			cutAt(w, r, etag, b, 0)
		}},
		{name: "ignores Range", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			r.Header.Del("Range")
			if n == 1 {
				cutAt(w, r, etag, b, 100_000)
			}
			serve(w, r, etag, b)
		}},
		{name: "wrong Content-Range", tries: 3, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			switch n {
			case 1:
				cutAt(w, r, etag, b, 100_000)
			case 2:
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-9/%d", len(b)))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(b[:10])
			default:
				serve(w, r, etag, b)
			}
		}},
		{name: "a range without Content-Range", tries: 3, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			switch n {
			case 1:
				cutAt(w, r, etag, b, 100_000)
			case 2:
				w.WriteHeader(http.StatusPartialContent)
				w.Write(b[100_000:])
			default:
				serve(w, r, etag, b)
			}
		}},
		{name: "a range of another size's file", tries: 3, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			switch n {
			case 1:
				cutAt(w, r, etag, b, 100_000)
			case 2:
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 100000-%d/%d", len(b), len(b)+1))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(append(b[100_000:len(b):len(b)], 0))
			default:
				serve(w, r, etag, b)
			}
		}},
		{name: "a range that nobody asked for", class: fault.Network, err: "which nobody asked for", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-9/%d", len(b)))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(b[:10])
		}},
		{name: "416 for a range that is there", tries: 3, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			switch n {
			case 1:
				cutAt(w, r, etag, b, 100_000)
			case 2:
				w.Header().Set("Content-Range", "bytes */50")
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			default:
				serve(w, r, etag, b)
			}
		}},
		{name: "ETag changed in between", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				old := bytes.Repeat([]byte("old "), len(b)/4)
				cutAt(w, r, `"v0"`, old, 100_000)
			}
			serve(w, r, etag, b)
		}},
		{name: "ETag changed and If-Range ignored", tries: 3, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			r.Header.Del("If-Range")
			if n == 1 {
				old := bytes.Repeat([]byte("old "), len(b)/4)
				cutAt(w, r, `"v0"`, old, 100_000)
			}
			serve(w, r, etag, b)
		}},
		{name: "changed in between, without any validator", tries: 3, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				cutAt(w, r, "", bytes.Repeat([]byte("old "), len(b)/4), 100_000)
			}
			serve(w, r, "", b)
		}},
		{name: "429 with seconds", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				w.Header().Set("Retry-After", "120")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			serve(w, r, etag, b)
		}},
		{name: "503 with a date", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				// The server's clock is a year ahead; only the difference counts.
				now := time.Now().Add(365 * 24 * time.Hour).UTC()
				w.Header().Set("Date", now.Format(http.TimeFormat))
				w.Header().Set("Retry-After", now.Add(90*time.Second).Format(http.TimeFormat))
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			serve(w, r, etag, b)
		}},
		{name: "429 for a day", class: fault.Network, err: "asks to come back in 24h", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{name: "503 for ever", class: fault.Network, err: "503 Service Unavailable", tries: 5, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		{name: "404", class: fault.Input, err: "does not exist on the server (404); see the mirror", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			http.NotFound(w, r)
		}},
		{name: "403", class: fault.Input, err: "refuses", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.WriteHeader(http.StatusForbidden)
		}},
		{name: "204", class: fault.Network, err: "204 No Content without the file", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.WriteHeader(http.StatusNoContent)
		}},
		{name: "304 unasked", class: fault.Network, err: "304", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.WriteHeader(http.StatusNotModified)
		}},
		{name: "a redirect to nowhere", class: fault.Network, err: "302", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.WriteHeader(http.StatusFound)
		}},
		{name: "a login page", class: fault.Input, err: `an HTML page, titled "Please log in"`, tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<!doctype html><title>Please\n log in</title>")
		}},
		{name: "a login page where a size is known", class: fault.Input, err: `an HTML page, titled "Please log in"`, tries: 1,
			request: func(r *Request) { r.Size = int64(size) },
			answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<title>Please log in</title>")
			}},
		{name: "a page that says it is a file", class: fault.Input, err: "an HTML page", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("Content-Type", "application/octet-stream")
			fmt.Fprint(w, "\n <HTML>no")
		}},
		{name: "Microsoft's block", class: fault.Network, err: "blocked this address for about 24 hours", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"Errors":[{"Key":"ErrorSettings.SentinelReject","Value":"Sentinel marked this request as rejected."}]}`)
		}},
		{name: "a redirect loop", class: fault.Network, err: "redirects in a circle", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			http.Redirect(w, r, map[string]string{"/f.iso": "/g.iso", "/g.iso": "/f.iso"}[r.URL.Path], http.StatusFound)
		}},
		{name: "redirects for ever", class: fault.Network, err: "again and again", tries: maxRedirects, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusFound)
		}},
		{name: "a redirect, cut behind it", tries: 4, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			switch {
			case r.URL.Path == "/f.iso":
				http.Redirect(w, r, "/g.iso", http.StatusTemporaryRedirect)
			case n == 2:
				cutAt(w, r, etag, b, 100_000)
			default:
				serve(w, r, etag, b)
			}
		}},
		{name: "compressed on the way", class: fault.Network, err: "sends it compressed (gzip)", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(b)
			z.Close()
		}},
		{name: "another length", class: fault.Input, err: "has 7 bytes on the server, not 300000", tries: 1,
			request: func(r *Request) { r.Size = int64(size) },
			answer:  func(w http.ResponseWriter, r *http.Request, n int, b []byte) { serve(w, r, etag, []byte("1234567")) }},
		{name: "longer than it should be, chunked", class: fault.Input, err: "longer on the server than the 300000 bytes", tries: 1,
			request: func(r *Request) { r.Size = int64(size) },
			answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
				w.Write(b)
				w.(http.Flusher).Flush()
				w.Write([]byte("x"))
			}},
		{name: "shorter than it should be, chunked", tries: 2,
			request: func(r *Request) { r.Size = int64(size) },
			answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
				if n == 1 {
					w.Header().Set("ETag", etag)
					w.Write(b[:100_000])
					w.(http.Flusher).Flush()
					return
				}
				serve(w, r, etag, b)
			}},
		{name: "chunked, no length", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Write(b[:10])
			w.(http.Flusher).Flush()
			w.Write(b[10:])
		}},
		{name: "endless", class: fault.Input, err: "longer on the server than the 1000000 bytes", tries: 1,
			request: func(r *Request) { r.Limit = 1_000_000 },
			answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
				for {
					if _, err := w.Write(b); err != nil {
						return
					}
				}
			}},
		{name: "to the end of the connection, cut", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				raw(w, "HTTP/1.0 200 OK\r\nETag: \"v1\"\r\n\r\n", b[:100_000])
				return
			}
			serve(w, r, etag, b)
		}},
		{name: "to the end of the connection", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			raw(w, "HTTP/1.0 200 OK\r\n\r\n", b)
		}},
		{name: "nothing", class: fault.Input, err: "is empty on the server", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.WriteHeader(http.StatusOK)
		}},
		{name: "nothing, chunked", class: fault.Input, err: "is empty on the server", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.(http.Flusher).Flush()
		}},
		{name: "a trickle", class: fault.Network, err: "next to nothing", tries: 5, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		{name: "a trickle once", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				w.Header().Set("ETag", etag)
				w.Header().Set("Content-Length", fmt.Sprint(len(b)))
				w.Write(b[:2000])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			serve(w, r, etag, b)
		}},
		{name: "mute before the headers", tries: 2, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			if n == 1 {
				<-r.Context().Done()
				return
			}
			serve(w, r, etag, b)
		}},
		{name: "one bit wrong", class: fault.Input, err: "not the pinned", tries: 1, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			c := bytes.Clone(b)
			c[len(c)/2] ^= 1
			serve(w, r, etag, c)
		}},
		{name: "garbage in place of HTTP", class: fault.Network, err: "malformed HTTP", tries: 5, answer: func(w http.ResponseWriter, r *http.Request, n int, b []byte) {
			raw(w, "SSH-2.0-OpenSSH_9.2\r\n", nil)
		}},
	}
}

// raw writes bytes in place of an answer and ends the connection.
func raw(w http.ResponseWriter, head string, body []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	conn.Write([]byte(head))
	conn.Write(body)
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
