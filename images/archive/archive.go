package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images"
)

// Entry is one image of an archive.
type Entry struct {
	Names  []string // full references with a tag, under which it will be known
	Source images.Source
}

// Options say what goes into an archive.
type Options struct {
	Platforms []images.Platform // Optional: which ones of an index; default all. With one, docker load takes the archive too
	Created   time.Time         // Optional: the time of the archive's members; default 1970
}

// Saved says what an entry became.
type Saved struct {
	Names  []string `json:"names"`
	Digest string   `json:"digest"` // of what the names stand for after an import
	Size   int64    `json:"size"`   // bytes of all its blobs
}

// blob is what will be a file of the archive.
type blob struct {
	size int64
	open func(ctx context.Context) (io.ReadCloser, error)
}

// plan gathers what will be written, so that everything is known to be there,
// and each blob is written once, before the first byte is.
type plan struct {
	blobs  map[string]blob // by "sha256:…"
	index  v1.IndexManifest
	docker []dockerImage
	single bool // every image is of one platform
	saved  []Saved
	names  map[string]bool
}

// dockerImage is an element of a docker-archive's manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes the archive. The same entries give the same bytes.
func Write(ctx context.Context, w io.Writer, entries []Entry, opts Options) ([]Saved, error) {
	p, err := newPlan(ctx, entries, opts)
	if err != nil {
		return nil, err
	}
	t := &writer{tar: tar.NewWriter(w), at: opts.Created}
	if t.at.IsZero() {
		t.at = time.Unix(0, 0)
	}
	if err := p.writeTo(ctx, t); err != nil {
		return nil, err
	}
	if err := t.tar.Close(); err != nil {
		return nil, fmt.Errorf("ending the archive: %w", err)
	}
	return p.saved, nil
}

func newPlan(ctx context.Context, entries []Entry, opts Options) (*plan, error) {
	p := &plan{blobs: map[string]blob{}, single: true, names: map[string]bool{},
		index: v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}}
	for _, e := range entries {
		if err := p.add(ctx, e, opts.Platforms); err != nil {
			return nil, fmt.Errorf("adding %s: %w", e.Source, err)
		}
	}
	if len(p.saved) == 0 {
		return nil, &fault.Problem{Class: fault.Usage, Field: "the archive", Why: "would hold no image", Fix: "name at least one"}
	}
	return p, nil
}

// add plans one image.
func (p *plan) add(ctx context.Context, e Entry, platforms []images.Platform) error {
	root, err := images.Select(ctx, e.Source, platforms)
	if err != nil {
		return err
	}
	s := Saved{Names: e.Names, Digest: root.Digest.String()}
	for _, name := range e.Names {
		if p.names[name] {
			return &fault.Problem{Class: fault.Usage, Field: "the archive", Value: name, Why: "is named twice", Fix: "name every image once"}
		}
		p.names[name] = true
		d := root.Descriptor()
		// containerd takes the first, Docker, podman and skopeo the second.
		d.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
		p.index.Manifests = append(p.index.Manifests, d)
	}
	manifests := []images.Manifest{root}
	if root.IsIndex() {
		p.single = false
		for _, d := range root.Children {
			m, err := e.Source.Manifest(ctx, d)
			if err != nil {
				return err
			}
			manifests = append(manifests, m)
		}
	} else if len(root.Blobs) > 0 {
		p.docker = append(p.docker, dockerOf(root, e.Names))
	}
	for _, m := range manifests {
		s.Size += p.addManifest(e.Source, m)
	}
	p.saved = append(p.saved, s)
	return nil
}

// addManifest plans a manifest and what it lists, and returns how many bytes
// that is.
func (p *plan) addManifest(src images.Source, m images.Manifest) int64 {
	size := int64(len(m.Raw))
	p.blobs[m.Digest.String()] = blob{size, func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(m.Raw))), nil
	}}
	for _, d := range m.Blobs {
		size += d.Size
		p.blobs[d.Digest.String()] = blob{d.Size, func(ctx context.Context) (io.ReadCloser, error) { return src.Blob(ctx, d) }}
	}
	return size
}

func dockerOf(m images.Manifest, names []string) dockerImage {
	d := dockerImage{Config: pathOf(m.Blobs[0].Digest.String()), RepoTags: slices.Clone(names), Layers: []string{}}
	for _, l := range m.Blobs[1:] {
		d.Layers = append(d.Layers, pathOf(l.Digest.String()))
	}
	return d
}

// pathOf is where a blob lies in an OCI image layout.
func pathOf(digest string) string { return "blobs/" + strings.ReplaceAll(digest, ":", "/") }

// writeTo writes what says how to read the archive, then the blobs by digest.
func (p *plan) writeTo(ctx context.Context, t *writer) error {
	files := []struct {
		name    string
		content any
	}{{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}}, {"index.json", p.index}}
	if p.single {
		files = append(files, struct {
			name    string
			content any
		}{"manifest.json", p.docker})
	}
	for _, f := range files {
		data, err := json.Marshal(f.content)
		if err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
		if err := t.file(f.name, int64(len(data)), strings.NewReader(string(data))); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := t.folder(dir); err != nil {
			return fmt.Errorf("writing %s: %w", dir, err)
		}
	}
	digests := make([]string, 0, len(p.blobs))
	for d := range p.blobs {
		digests = append(digests, d)
	}
	slices.Sort(digests)
	for _, d := range digests {
		if err := t.blob(ctx, d, p.blobs[d]); err != nil {
			return fmt.Errorf("writing %s: %w", d, err)
		}
	}
	return nil
}

// writer writes members that say nothing of this machine.
type writer struct {
	tar *tar.Writer
	at  time.Time
}

func (t *writer) folder(name string) error {
	return t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: t.at.UTC().Truncate(time.Second), Format: tar.FormatUSTAR})
}

func (t *writer) file(name string, size int64, r io.Reader) error {
	format := tar.FormatUSTAR
	if size >= 8<<30 {
		format = tar.FormatPAX
	}
	if err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: t.at.UTC().Truncate(time.Second), Format: format}); err != nil {
		return err
	}
	n, err := io.Copy(t.tar, r)
	if err == nil && n != size {
		err = fmt.Errorf("got %d bytes, want %d", n, size)
	}
	return err
}

// blob writes one, and refuses it where it is not what its digest says.
func (t *writer) blob(ctx context.Context, digest string, b blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rc, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer rc.Close()
	sum := sha256.New()
	if err := t.file(pathOf(digest), b.size, io.TeeReader(rc, sum)); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest {
		return &fault.Problem{Class: fault.Input, Field: "the image", Value: digest, Why: "was refused: its content has the digest " + got, Fix: "try again; what keeps it is damaged, or something changes it on the way"}
	}
	return nil
}
