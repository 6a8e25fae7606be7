package cas

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func userFile(t *testing.T, content []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "windows ü.iso")
	if err := os.WriteFile(p, content, 0o640); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAddBlob(t *testing.T) {
	s := open(t)
	// Zeros at the start, in the middle, over a block's border and at the end.
	content := make([]byte, 5<<20+17)
	copy(content[1<<20+3:], "some")
	copy(content[3<<20-2:], "more")
	p := userFile(t, content)
	var last int64
	b, err := s.AddBlob(t.Context(), p, func(n int64) { last = n })
	if err != nil {
		t.Fatal(err)
	}
	want, size, err := DigestFile(t.Context(), p)
	if err != nil || b.Digest != want || b.Size != size || last != size {
		t.Fatalf("%+v, told %d, want %s of %d: %v", b, last, want, size, err)
	}
	got, err := os.ReadFile(b.Path)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the blob has another content: %v", err)
	}
	fi, err := os.Stat(b.Path)
	if err != nil || fi.Mode().Perm()&0o222 != 0 {
		t.Errorf("the blob is not sealed: %v %v", fi.Mode(), err)
	}
	if fi, err := os.Stat(p); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o640 {
		t.Errorf("the user's file was touched: %v %v", fi.Mode(), err)
	}
	again, err := s.AddBlob(t.Context(), p, nil)
	if err != nil || again != b {
		t.Errorf("again: %+v %v", again, err)
	}
	found, ok, err := s.Blob(want)
	if err != nil || !ok || found != b {
		t.Errorf("lookup: %+v %v %v", found, ok, err)
	}
	list, err := s.Blobs()
	if err != nil || len(list) != 1 || list[0] != b {
		t.Errorf("list: %+v %v", list, err)
	}
	onlyBlobs(t, s, 1)
	if err := s.VerifyBlob(t.Context(), want); err != nil {
		t.Error(err)
	}
	if err := s.RemoveBlob(want); err != nil {
		t.Error(err)
	}
	if _, ok, err := s.Blob(want); ok || err != nil {
		t.Errorf("after its removal: %v %v", ok, err)
	}
	if err := s.RemoveBlob(want); err != nil {
		t.Errorf("removing it twice: %v", err)
	}
}

func onlyBlobs(t *testing.T, s *Store, n int) {
	t.Helper()
	entries, err := os.ReadDir(s.blobDir())
	if err != nil || len(entries) != n {
		t.Errorf("in the folder of the blobs: %v, %v", entries, err)
	}
}

func TestBlobsOfAnEmptyStore(t *testing.T) {
	s := open(t)
	if list, err := s.Blobs(); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
	if err := s.Sweep(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "sha256:", "sha256:../x", "sha512:00", "../../etc/passwd"} {
		if _, _, err := s.Blob(bad); err == nil {
			t.Errorf("%q was taken for a digest", bad)
		}
	}
}

func TestDamagedBlob(t *testing.T) {
	s := open(t)
	p := userFile(t, []byte("good"))
	b, err := s.AddBlob(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	damage := func(content string) {
		if err := os.Chmod(b.Path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.Path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage("evil")
	if err := s.VerifyBlob(t.Context(), b.Digest); fault.ClassOf(err) != fault.Failed || !errors.As(err, new(*fault.Problem)) {
		t.Errorf("error %v", err)
	}
	damage("cut") // another size: adding it again mends it
	if _, err := s.AddBlob(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.VerifyBlob(t.Context(), b.Digest); err != nil {
		t.Error(err)
	}
	if err := s.VerifyBlob(t.Context(), "sha256:"+string(bytes.Repeat([]byte("0"), 64))); err == nil {
		t.Error("a blob that is not there was verified")
	}
}

func TestSweepOfBlobs(t *testing.T) {
	s := open(t)
	live, err := s.beginBlob()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := s.beginBlob()
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Unlock()
	if err := s.SweepBlobs(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.dir); !os.IsNotExist(err) {
		t.Error("what a dead process has left is still there")
	}
	if _, err := os.Stat(live.dir); err != nil {
		t.Error("what is being made was removed")
	}
	live.discard()
	onlyBlobs(t, s, 0)
}

func TestAddCancelled(t *testing.T) {
	s := open(t)
	p := userFile(t, make([]byte, 3<<20))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.AddBlob(ctx, p, func(int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	onlyBlobs(t, s, 0)
}

// TestAddAtOnce adds one file from many sides while the store is swept.
func TestAddAtOnce(t *testing.T) {
	s := open(t)
	p := userFile(t, bytes.Repeat([]byte("x"), 1<<20))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				b, err := s.AddBlob(t.Context(), p, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.VerifyBlob(t.Context(), b.Digest); err != nil {
					t.Error(err)
				}
				if err := s.SweepBlobs(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	onlyBlobs(t, s, 1)
}
