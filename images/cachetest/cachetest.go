// Package cachetest has the suite that every images.Cache passes. Nothing but
// tests may import it.
package cachetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/wbox-dev/wbox/images"
)

// Run checks what an images.Cache promises; open returns an empty one.
func Run(t *testing.T, open func(t *testing.T) images.Cache) {
	content := []byte("some layer")
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	read := func(t *testing.T, c images.Cache) []byte {
		t.Helper()
		rc, err := c.Open(t.Context(), digest)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		data, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(t *testing.T, c images.Cache, data []byte) images.Draft {
		t.Helper()
		d, err := c.Create(t.Context(), digest)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := d.Write(data); err != nil || n != len(data) {
			t.Fatalf("wrote %d of %d: %v", n, len(data), err)
		}
		return d
	}
	t.Run("appears when it is committed", func(t *testing.T) {
		c := open(t)
		if read(t, c) != nil {
			t.Fatal("an empty cache has something")
		}
		d := write(t, c, content[:4])
		if _, err := d.Write(content[4:]); err != nil || read(t, c) != nil {
			t.Fatalf("a draft is seen: %v", err)
		}
		if err := d.Commit(); err != nil {
			t.Fatal(err)
		}
		d.Discard()
		if !bytes.Equal(read(t, c), content) {
			t.Error("what was committed is not there")
		}
	})
	t.Run("a draft that is dropped leaves nothing", func(t *testing.T) {
		c := open(t)
		d := write(t, c, content)
		d.Discard()
		d.Discard()
		if read(t, c) != nil {
			t.Error("it is there")
		}
	})
	t.Run("what is removed can come again", func(t *testing.T) {
		c := open(t)
		for range 2 {
			if err := write(t, c, content).Commit(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(read(t, c), content) {
				t.Fatal("what was committed is not there")
			}
			if err := c.Remove(t.Context(), digest); err != nil || read(t, c) != nil {
				t.Fatalf("it is still there: %v", err)
			}
		}
		if err := c.Remove(t.Context(), digest); err != nil {
			t.Errorf("removing nothing: %v", err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		c := open(t)
		var wg sync.WaitGroup
		for range 8 {
			d := write(t, c, content)
			wg.Go(func() {
				if err := d.Commit(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if !bytes.Equal(read(t, c), content) {
			t.Error("it is not there")
		}
	})
}
