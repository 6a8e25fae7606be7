package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/fault"
)

// markFile holds, within a result's folder, why verification found it
// damaged. Lookup takes no result that has one; making it anew replaces it.
const markFile = ".damaged"

func (s *Store) markPath(key string) string { return filepath.Join(s.Dir(key), markFile) }

func (s *Store) marked(key string) bool {
	_, err := os.Lstat(s.markPath(key))
	return err == nil
}

// Damage is something wrong in the store.
type Damage struct {
	Key   string // of the result
	Stage string
	What  string
}

// Verified is what a verification has found.
type Verified struct {
	Results int      // looked at
	Bytes   int64    // rehashed
	Busy    []string // keys that are being made right now, which were left out
	Damage  []Damage
}

// Verify rehashes every output whose digest is recorded, compares the sizes of
// the others, and checks that each overlay's chain of disks is there. A damaged
// result is marked, so that no build takes it. keyOf, where given, returns the
// key that a key.json stands for. looked is called after each result.
func (s *Store) Verify(ctx context.Context, keyOf func(doc []byte) (string, error), looked func(Entry)) (Verified, error) {
	entries, err := s.Entries()
	if err != nil {
		return Verified{}, err
	}
	var v Verified
	for _, e := range entries {
		if err := s.verifyOne(ctx, e.Key, keyOf, &v); err != nil {
			return v, err
		}
		if looked != nil {
			looked(e)
		}
	}
	return v, nil
}

func (s *Store) verifyOne(ctx context.Context, key string, keyOf func([]byte) (string, error), v *Verified) error {
	lock, err := s.TryLock(key) // it is neither replaced nor removed meanwhile
	if err != nil {
		return err
	}
	if lock == nil {
		v.Busy = append(v.Busy, key)
		return nil
	}
	defer lock.Unlock()
	e, err := s.entry(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v.Results++
	what := e.Damage
	if what == "" {
		var n int64
		what, n, err = s.inspect(ctx, e, keyOf)
		v.Bytes += n
		if err != nil {
			return err
		}
		if what != "" {
			err = s.mark(key, what)
		}
	}
	if what != "" {
		v.Damage = append(v.Damage, Damage{Key: key, Stage: e.Stage, What: what})
	}
	return err
}

// VerifyOutput rehashes an output whose digest is recorded, before it is used.
// One that has changed is a *fault.Problem of class fault.Failed, and its
// result is marked, so that the next build makes it anew.
func (s *Store) VerifyOutput(ctx context.Context, key, name string) error {
	e, err := s.entry(key)
	if err != nil {
		return fmt.Errorf("looking at a stored result: %w", err)
	}
	want := e.Outputs[name].Digest
	if want == "" {
		return nil
	}
	path := filepath.Join(s.Dir(key), name)
	got, _, err := digestOf(ctx, path)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := ""
	switch {
	case err != nil:
		why = "can't be read"
	case got != want:
		why = "has changed since it was made: its content has the digest " + got
	default:
		return nil
	}
	p := &fault.Problem{Class: fault.Failed, Field: "store", Value: path, Why: why, Err: err,
		Fix: "look at this machine's disk and memory; run it again, and it is made anew"}
	return errors.Join(p, s.mark(key, "its output "+name+" "+why))
}

// inspect reads a result and says what is wrong with it, or "". It returns
// how many bytes it has hashed. The error is for the end of ctx.
func (s *Store) inspect(ctx context.Context, e Entry, keyOf func([]byte) (string, error)) (what string, n int64, err error) {
	if keyOf != nil {
		if k, err := keyOf(e.Doc); err != nil || k != e.Key {
			return "key.json does not have this key", 0, nil
		}
	}
	for _, name := range outputNames(&e.Result) {
		o := e.Outputs[name]
		p := filepath.Join(s.Dir(e.Key), name)
		if o.Kind == "disk" {
			if what := s.chain(e, p); what != "" {
				return "its output " + name + " " + what, n, nil
			}
		}
		if o.Digest == "" {
			continue
		}
		digest, size, err := digestOf(ctx, p)
		n += size
		if ctx.Err() != nil {
			return "", n, ctx.Err()
		}
		if err != nil {
			return fmt.Sprintf("its output %s can't be read: %v", name, err), n, nil
		}
		if digest != o.Digest {
			return "its output " + name + " does not have the content that was recorded", n, nil
		}
	}
	return "", n, nil
}

func digestOf(ctx context.Context, path string) (string, int64, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", 0, err
	}
	if fi.IsDir() {
		return DigestTree(ctx, path)
	}
	return DigestFile(ctx, path)
}

// chain says what is wrong with the backing file that a disk names, or "".
// One that is no qcow2 image is none of the store's business.
func (s *Store) chain(e Entry, path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "can't be read: " + err.Error()
	}
	defer f.Close()
	backing, err := backingFile(f)
	switch {
	case errors.Is(err, errNotQcow2) && len(e.Parents) == 0:
		return ""
	case err != nil:
		return "is damaged: " + err.Error()
	case backing == "":
		return ""
	}
	if !filepath.IsAbs(backing) {
		backing = filepath.Join(filepath.Dir(path), filepath.FromSlash(backing))
	}
	if _, err := os.Stat(backing); err != nil {
		return "is layered on a disk that is gone"
	}
	for _, p := range e.Parents {
		if sameFolder(filepath.Dir(backing), s.Dir(p)) {
			return ""
		}
	}
	return "is layered on a disk that is none of its parents'"
}

func sameFolder(a, b string) bool {
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	return err == nil && os.SameFile(fa, fb)
}

// mark records why a result is damaged.
func (s *Store) mark(key, why string) error {
	if err := os.WriteFile(s.markPath(key), []byte(why+"\n"), 0o644); err != nil {
		return fmt.Errorf("marking a damaged result: %w", err)
	}
	return nil
}

var errNotQcow2 = errors.New("it is not a qcow2 image")

// backingFile reads the name of the backing file from a qcow2 image's header:
// magic "QFI\xfb", version, then the name's offset (8 bytes) and length (4), all
// big-endian (QEMU, docs/interop/qcow2.txt). The name has at most 1023 bytes.
func backingFile(r io.ReaderAt) (string, error) {
	head := make([]byte, 20)
	if _, err := r.ReadAt(head, 0); err != nil || !bytes.Equal(head[:4], []byte("QFI\xfb")) {
		return "", errNotQcow2
	}
	offset, size := binary.BigEndian.Uint64(head[8:]), binary.BigEndian.Uint32(head[16:])
	if offset == 0 {
		return "", nil
	}
	if size > 1023 || offset > 1<<40 {
		return "", errors.New("its header is garbled")
	}
	name := make([]byte, size)
	if _, err := r.ReadAt(name, int64(offset)); err != nil {
		return "", errors.New("its header is cut short")
	}
	return string(name), nil
}
