package media

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

// killedEnv makes this test binary a process that fetches or adds a medium.
const killedEnv = "WBOX_MEDIA_TEST"

// TestKilled kills processes that fetch and add a medium, at random moments:
// what they leave is never taken for the medium, and the next one goes on.
func TestKilled(t *testing.T) {
	root, base, file := os.Getenv(killedEnv), os.Getenv(killedEnv+"_BASE"), os.Getenv(killedEnv+"_FILE")
	table := func() []Entry {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		digest, _, err := cas.DigestFile(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return []Entry{{Name: "w", Release: "2022", Version: "10.0.20348.587", Editions: []string{"core"}, SHA256: digest[len("sha256:"):], Size: int64(len(b)), Path: "/w.iso"}}
	}
	if root != "" {
		l, err := Open(root, Options{Table: table(), BaseURL: base, Licence: yes})
		if err == nil && base != "" {
			_, err = l.Fetch(t.Context(), "w")
		} else if err == nil {
			_, err = l.Add(t.Context(), file, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	file = filepath.Join(t.TempDir(), "w.iso")
	if err := isotest.WriteFake(file, isotest.Editions("2022"), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 24<<20); err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"w"`)
		http.ServeFile(&slow{w, r, &sent}, r, file)
	}))
	defer s.Close()
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, from := range []string{s.URL, ""} {
		store := filepath.Join(t.TempDir(), "store")
		run := func(limit time.Duration) error {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
			cmd.Env = append(os.Environ(), killedEnv+"="+store, killedEnv+"_BASE="+from, killedEnv+"_FILE="+file)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
			defer timer.Stop()
			return cmd.Wait()
		}
		sent.Store(0)
		killed := 0
		for range rounds {
			if run(50*time.Millisecond+time.Duration(random.IntN(250))*time.Millisecond) != nil {
				killed++
			}
			l, err := Open(store, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range must(l.store.Blobs()) {
				if err := l.store.VerifyBlob(t.Context(), b.Digest); err != nil {
					t.Error(err)
				}
			}
		}
		if err := run(time.Minute); err != nil {
			t.Fatal(err)
		}
		l, err := Open(store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if items := must(l.Items()); len(items) != 1 {
			t.Errorf("in the store: %+v", items)
		}
		if err := l.store.SweepBlobs(); err != nil {
			t.Error(err)
		}
		if left := must(os.ReadDir(filepath.Join(store, "blobs", "sha256"))); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
		t.Logf("%d of %d killed, %d bytes sent for 24 MiB", killed, rounds, sent.Load())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// slow sends some 40 MB a second, and counts.
type slow struct {
	http.ResponseWriter
	r    *http.Request
	sent *atomic.Int64
}

func (s *slow) Write(p []byte) (int, error) {
	select {
	case <-s.r.Context().Done():
	case <-time.After(time.Millisecond):
	}
	n, err := s.ResponseWriter.Write(p)
	s.sent.Add(int64(n))
	return n, err
}
