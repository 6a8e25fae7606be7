package imagestest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
)

// strict adds to go-containerregistry's registry what real ones do and it does
// not: a blob is known by repository, is mounted from another one, and must
// be there when a manifest lists it.
type strict struct {
	next http.Handler

	mu    sync.Mutex
	blobs map[string]bool // "repository digest"
}

var (
	blobPath     = regexp.MustCompile(`^/v2/(.+)/blobs/(sha256:[0-9a-f]{64})$`)
	uploadPath   = regexp.MustCompile(`^/v2/(.+)/blobs/uploads/`)
	manifestPath = regexp.MustCompile(`^/v2/(.+)/manifests/`)
)

func (s *strict) has(repo, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[repo+" "+digest]
}

func (s *strict) add(repo, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[repo+" "+digest] = true
}

// ServeHTTP answers a request.
func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if m := blobPath.FindStringSubmatch(r.URL.Path); m != nil && !s.has(m[1], m[2]) {
		Refuse(w, http.StatusNotFound, "BLOB_UNKNOWN")
		return
	}
	if m := uploadPath.FindStringSubmatch(r.URL.Path); m != nil {
		switch {
		case r.Method == http.MethodPost && s.has(q.Get("from"), q.Get("mount")):
			s.add(m[1], q.Get("mount"))
			w.Header().Set("Location", "/v2/"+m[1]+"/blobs/"+q.Get("mount"))
			w.WriteHeader(http.StatusCreated)
		case r.Method == http.MethodPut:
			rec := httptest.NewRecorder()
			s.next.ServeHTTP(rec, r)
			if rec.Code == http.StatusCreated {
				s.add(m[1], q.Get("digest"))
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		default:
			s.next.ServeHTTP(w, r)
		}
		return
	}
	if m := manifestPath.FindStringSubmatch(r.URL.Path); m != nil && r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil || s.lacks(m[1], body) {
			Refuse(w, http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.next.ServeHTTP(w, r)
}

// lacks says whether a manifest lists a blob that is not there. A layer with an
// address of its own need not be.
func (s *strict) lacks(repo string, manifest []byte) bool {
	type descriptor struct {
		Digest string
		URLs   []string
	}
	var m struct {
		Config descriptor
		Layers []descriptor
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return true
	}
	for _, d := range append(m.Layers, m.Config) {
		if d.Digest != "" && len(d.URLs) == 0 && !s.has(repo, d.Digest) {
			return true
		}
	}
	return false
}

// Refuse answers as registries do when they refuse something.
func Refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"refused"}]}`, code)
}
