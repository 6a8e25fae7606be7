package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// bitsFile holds what a folder of kept bits is.
const bitsFile = "bits.json"

// Get puts a ref's programs into the folder dir, which is made if need be, and
// beside them a file "version", so that the folder is one that --k8s takes.
// Bits that were made once are kept in opts.CacheDir and not made again; fresh
// says that they were made now. A folder with files that are not of ours is a
// *fault.Problem of class fault.Usage.
func Get(ctx context.Context, src Source, ref Ref, opts Options, dir string, sink report.Sink) (bits Bits, fresh bool, err error) {
	if err := refuseForeign(dir); err != nil {
		return Bits{}, false, err
	}
	data, err := json.Marshal(struct {
		Schema int
		Ref    Ref
		Linux  bool
		Images string `json:",omitempty"` // a control plane's, for a processor
	}{1, ref, opts.Linux, opts.ControlPlane})
	if err != nil {
		return Bits{}, false, fmt.Errorf("writing the key of the bits: %w", err)
	}
	sum := sha256.Sum256(data)
	kept := filepath.Join(opts.CacheDir, "bits", hex.EncodeToString(sum[:]))
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return Bits{}, false, &fault.Problem{Class: fault.Host, Field: "--store", Value: opts.CacheDir, Why: "is not writable", Err: err, Fix: "name another folder with --store or WBOX_STORE"}
	}
	unlock, err := gosource.WaitForLock(ctx, kept+".lock", func() {
		sink.Emit(report.Event{Kind: report.StageProgress, Message: "waiting for another wbox that makes the same"})
	})
	if err != nil {
		return Bits{}, false, err
	}
	defer unlock()
	if bits, err = readKept(kept); err != nil {
		if bits, err = produce(ctx, src, ref, kept, sink); err != nil {
			return Bits{}, false, full(err, "--store", opts.CacheDir)
		}
		fresh = true
	}
	if err := place(ctx, bits, kept, dir); err != nil {
		return Bits{}, false, full(err, "-o", dir)
	}
	return bits, fresh, nil
}

// full makes of an error that comes of a full disk one that names the folder.
func full(err error, flag, dir string) error {
	if !capacity.IsFull(err) || fault.ClassOf(err) == fault.Host {
		return err
	}
	return &fault.Problem{Class: fault.Host, Field: flag, Value: dir, Why: "its disk is full", Err: err, Fix: "make room, or name a folder on a larger disk with " + flag}
}

// produce fetches the bits and keeps them.
func produce(ctx context.Context, src Source, ref Ref, kept string, sink report.Sink) (Bits, error) {
	if err := os.RemoveAll(kept); err != nil {
		return Bits{}, fmt.Errorf("removing damaged bits: %w", err)
	}
	tmp, scratch := kept+".new", kept+".scratch" // left by a process that died, perhaps
	for _, d := range []string{tmp, scratch} {
		if err := os.RemoveAll(d); err != nil {
			return Bits{}, fmt.Errorf("making room for the bits: %w", err)
		}
		if err := os.Mkdir(d, 0o755); err != nil {
			return Bits{}, fmt.Errorf("making a folder for the bits: %w", err)
		}
	}
	bits, err := src.Fetch(ctx, ref, tmp, scratch, sink)
	if err != nil {
		return Bits{}, errors.Join(err, os.RemoveAll(tmp)) // the compiler's log stays
	}
	data, err := json.Marshal(bits)
	if err != nil {
		return Bits{}, fmt.Errorf("writing what the bits are: %w", err)
	}
	if err := os.WriteFile(filepath.Join(tmp, bitsFile), data, 0o644); err != nil {
		return Bits{}, fmt.Errorf("writing what the bits are: %w", err)
	}
	if err := os.Rename(tmp, kept); err != nil {
		return Bits{}, fmt.Errorf("keeping the bits: %w", err)
	}
	return bits, os.RemoveAll(scratch)
}

// readKept reads kept bits. Any that are not whole are an error.
func readKept(kept string) (Bits, error) {
	data, err := os.ReadFile(filepath.Join(kept, bitsFile))
	if err != nil {
		return Bits{}, err
	}
	var bits Bits
	if err := json.Unmarshal(data, &bits); err != nil {
		return Bits{}, err
	}
	for _, b := range bits.Binaries {
		if !isThere(filepath.Join(kept, b.File), b) {
			return Bits{}, fmt.Errorf("the kept %s is damaged", b.File)
		}
	}
	return bits, nil
}

// isThere says whether a file is that program, byte by byte.
func isThere(path string, b Binary) bool {
	f, err := gosource.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() != b.Size {
		return false
	}
	sum, err := gosource.Scan(f, Expect{})
	return err == nil && sum == b.SHA256
}

// place writes the programs into dir, each by rename and only if it isn't there; a program of an earlier
// time that these bits lack is removed.
func place(ctx context.Context, bits Bits, kept, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &fault.Problem{Class: fault.Host, Field: "-o", Value: dir, Why: "can't be made", Err: err, Fix: "name another folder"}
	}
	files := []string{"version"}
	for _, b := range bits.Binaries {
		files = append(files, b.File)
		if isThere(filepath.Join(dir, b.File), b) {
			continue
		}
		f, err := os.Open(filepath.Join(kept, b.File))
		if err != nil {
			return fmt.Errorf("reading %s: %w", b.File, err)
		}
		err = atomicfile.Copy(ctx, filepath.Join(dir, b.File), f, b.Size, 0o755)
		f.Close()
		if err != nil {
			return fmt.Errorf("writing %s: %w", b.File, err)
		}
	}
	for _, name := range ourFiles() {
		if !slices.Contains(files, name) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("removing an old %s: %w", name, err)
			}
		}
	}
	if err := atomicfile.Write(ctx, filepath.Join(dir, "version"), []byte(bits.Ref.Version+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	return nil
}

// ourFiles are the names that Get writes.
func ourFiles() []string {
	files := []string{"version"}
	for _, t := range append(Options{Linux: true}.targets(Programs()), Options{ControlPlane: "amd64"}.targets(nil)...) {
		files = append(files, t.file())
	}
	return files
}

// refuseForeign refuses a folder in which something else lies.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	p := &fault.Problem{Class: fault.Usage, Field: "-o", Value: dir, Fix: "name a new or empty folder"}
	if err != nil {
		p.Why, p.Err = "is no folder that can be read", err
		return p
	}
	for _, e := range entries {
		if !slices.Contains(ourFiles(), e.Name()) && !strings.HasPrefix(e.Name(), atomicfile.TempPrefix) {
			p.Why = "holds " + e.Name() + ", which is not of ours"
			return p
		}
	}
	return nil
}
