package component

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/wbox-dev/wbox/builder/internal/ctxio"
)

// unpacker takes programs out of layers. It writes files of its own naming into
// one folder and nothing else, whatever an archive says.
type unpacker struct {
	root    *os.Root
	known   func(base string) string // the name under which a file is kept, "" for none
	left    int64                    // bytes that may still be unpacked
	serial  int
	written int64 // bytes of programs so far
}

// found is a program that an image holds.
type found struct{ temp, digest string }

// unpackImage puts the programs of an image's tar file into dir. known says
// under which name a file, named by its base name in lower case, is kept.
func unpackImage(ctx context.Context, name, dir, scratch string, known func(base string) string) error {
	a, err := openArchive(ctx, name, scratch)
	if err != nil {
		return err
	}
	defer a.file.Close()
	images, err := a.images()
	if errors.Is(err, errNoImage) && a.holds(known) {
		images, err = []image{{plain: true}}, nil
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, known: known, left: maxImage}
	kept := map[string]found{}
	for _, i := range images {
		programs, err := u.image(ctx, a, i)
		if err != nil {
			return err
		}
		for at, p := range programs {
			base := known(strings.ToLower(path.Base(at)))
			if old, ok := kept[base]; ok && old.digest != p.digest {
				return fmt.Errorf("it holds two different files named %s; take out the right one and give its folder", base)
			}
			kept[base] = p
		}
	}
	return u.keep(kept)
}

// keep names the files that were found, and removes the others.
func (u *unpacker) keep(kept map[string]found) error {
	placed := map[string]string{} // a file -> the name that it got: two programs may be links to one
	for base, p := range kept {
		err := error(nil)
		if first := placed[p.temp]; first != "" {
			err = u.root.Link(first, base)
		} else {
			err = u.root.Rename(p.temp, base)
		}
		if err != nil {
			return fmt.Errorf("keeping %s: %w", base, err)
		}
		placed[p.temp] = base
	}
	for n := range u.serial {
		if err := u.root.Remove(tempName(n + 1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing what was hidden: %w", err)
		}
	}
	return nil
}

// image returns the programs of one image, by their paths in it.
func (u *unpacker) image(ctx context.Context, a *archive, i image) (map[string]found, error) {
	programs := map[string]found{}
	if i.plain {
		st, err := a.file.Stat()
		if err != nil {
			return nil, err
		}
		return programs, u.layer(ctx, io.NewSectionReader(a.file, 0, st.Size()), programs)
	}
	for _, name := range i.layers {
		blob, err := a.open(name)
		if err != nil {
			if strings.HasPrefix(name, "blobs/") || path.Base(name) == "layer.tar" {
				continue // a base layer that is not distributed; what lies in it is not ours
			}
			return nil, err
		}
		if err := u.layer(ctx, blob, programs); err != nil {
			return nil, fmt.Errorf("reading the layer %s: %w", name, err)
		}
	}
	return programs, nil
}

// layer lays one layer over the programs of those below.
func (u *unpacker) layer(ctx context.Context, blob *io.SectionReader, programs map[string]found) error {
	plain, err := inflate(blob)
	if err != nil {
		return err
	}
	defer plain.Close()
	limit := min(u.left, max(maxSmall, maxRatio*blob.Size()))
	bounded := &io.LimitedReader{R: ctxio.Reader(ctx, plain), N: limit + 1}
	defer func() { u.left -= min(u.left, limit+1-bounded.N) }()
	r := tar.NewReader(bounded)
	here := map[string]bool{} // programs of this layer
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case bounded.N <= 0:
			return fmt.Errorf("it unpacks to more than %d bytes", limit)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n >= maxEntries:
			return errors.New("it has too many entries")
		}
		name, err := safeName(h.Name)
		if err != nil {
			return err
		}
		name = strings.ToLower(name)
		if hide(name, programs, here) || u.known(path.Base(name)) == "" || h.Typeflag == tar.TypeDir {
			continue
		}
		if here[name] {
			return fmt.Errorf("%s is in it twice", name)
		}
		here[name] = true
		if programs[name], err = u.program(h, r, programs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// hide applies the removal of a file or of a folder's content by an upper
// layer, and says whether the entry was one.
func hide(name string, programs map[string]found, here map[string]bool) bool {
	folder, base := path.Split(name)
	of, ok := strings.CutPrefix(base, ".wh.")
	if !ok {
		return false
	}
	for at := range programs {
		if !here[at] && (at == folder+of || strings.HasPrefix(at, folder+of+"/") || of == ".wh..opq" && strings.HasPrefix(at, folder)) {
			delete(programs, at)
		}
	}
	return true
}

// program writes one program to a file of its own.
func (u *unpacker) program(h *tar.Header, r io.Reader, programs map[string]found) (found, error) {
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeLink:
		to, err := safeName(h.Linkname)
		if p, ok := programs[strings.ToLower(to)]; err == nil && ok {
			return p, nil
		}
		return found{}, fmt.Errorf("it is a link to %q, which is none of the programs", h.Linkname)
	default:
		return found{}, errors.New("it is no regular file")
	}
	if u.written += h.Size; h.Size > maxProgram || u.written > maxPrograms {
		return found{}, fmt.Errorf("its %d bytes are too many for a program", h.Size)
	}
	u.serial++
	temp := tempName(u.serial)
	out, err := u.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return found{}, err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), r)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return found{temp: temp, digest: hex.EncodeToString(sum.Sum(nil))}, err
}

// tempName is the name of a file until it is known to be kept.
func tempName(n int) string { return fmt.Sprintf("found-%d.tmp", n) }
