package fetch

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
)

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
