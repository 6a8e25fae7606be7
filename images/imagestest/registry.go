// Package imagestest has what tests of images need: registries in process that
// count and fail on demand, and images to put there. Nothing but tests may
// import it.
package imagestest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a registry on loopback. It is safe for concurrent use.
type Registry struct {
	Host string // such as "127.0.0.1:40123"

	server *httptest.Server
	next   http.Handler

	mu       sync.Mutex
	requests []string
	fault    Fault
	sent     int64
	flying   int
	most     int
}

// Fault answers a request in place of the registry; it returns false to let
// the registry answer.
type Fault func(w http.ResponseWriter, r *http.Request) bool

// New starts a registry without TLS that keeps everything in memory.
func New() *Registry { return start(nil, httptest.NewServer) }

// NewTLS starts one with TLS and a certificate that nobody trusts.
func NewTLS() *Registry { return start(nil, httptest.NewTLSServer) }

// Before starts a registry that asks next for everything.
func Before(next http.Handler) *Registry { return start(next, httptest.NewServer) }

func start(next http.Handler, serve func(http.Handler) *httptest.Server) *Registry {
	r := &Registry{next: next}
	if next == nil {
		r.next = &strict{next: registry.New(registry.Logger(log.New(io.Discard, "", 0))), blobs: map[string]bool{}}
	}
	r.server = serve(r)
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	_, r.Host, _ = strings.Cut(r.server.URL, "://")
	return r
}

// Close stops it.
func (r *Registry) Close() { r.server.Close() }

// Fail makes every request meet a fault; nil takes it away.
func (r *Registry) Fail(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

// ServeHTTP counts the request and answers it.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, req.Method+" "+req.URL.RequestURI())
	r.flying++
	r.most = max(r.most, r.flying)
	fault := r.fault
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.flying--
		r.mu.Unlock()
	}()
	if fault != nil && fault(w, req) {
		return
	}
	if req.Body != nil {
		req.Body = &counted{req.Body, r}
	}
	r.next.ServeHTTP(w, req)
}

type counted struct {
	io.ReadCloser
	r *Registry
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.r.mu.Lock()
	c.r.sent += int64(n)
	c.r.mu.Unlock()
	return n, err
}

// Requests returns what was asked since the last Reset, "METHOD /PATH" each.
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

// Count says how many requests begin with a prefix and contain a text.
func (r *Registry) Count(prefix, text string) int {
	n := 0
	for _, q := range r.Requests() {
		if strings.HasPrefix(q, prefix) && strings.Contains(q, text) {
			n++
		}
	}
	return n
}

// Received says how many bytes came in bodies since the last Reset, and how
// many requests were answered at once.
func (r *Registry) Received() (bytes int64, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent, r.most
}

// Reset forgets what was counted.
func (r *Registry) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.sent, r.most = nil, 0, 0
}
