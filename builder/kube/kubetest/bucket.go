package kubetest

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault answers a request in place of the bucket; n counts the requests for
// that path, from 1. It returns false to let the bucket answer.
type Fault func(w http.ResponseWriter, r *http.Request, n int) bool

// Bucket serves a folder in the layout in which Kubernetes publishes releases
// and CI builds, with faults on demand. It is safe for concurrent use.
type Bucket struct {
	root   string
	mu     sync.Mutex
	asked  map[string]int
	faults map[string]Fault
}

// NewBucket serves the folder root, which is made if need be.
func NewBucket(root string) (*Bucket, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("making the bucket: %w", err)
	}
	return &Bucket{root: root, asked: map[string]int{}, faults: map[string]Fault{}}, nil
}

// Path is where an object such as "ci/latest.txt" lies.
func (b *Bucket) Path(object string) string { return filepath.Join(b.root, filepath.FromSlash(object)) }

// Fail makes requests for an object meet a fault.
func (b *Bucket) Fail(object string, f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[object], b.asked[object] = f, 0
}

// Asked says how often an object's content was asked for.
func (b *Bucket) Asked(object string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[object]
}

// Mark writes a marker such as "ci/latest.txt", last moved at a time.
func (b *Bucket) Mark(object, body string, at time.Time) error {
	if err := b.put(object, []byte(body)); err != nil {
		return err
	}
	return os.Chtimes(b.Path(object), at, at)
}

// Publish builds the programs of a version and puts them under kind ("release"
// or "ci"), with checksums and archives, for Windows and with linux for that too.
func (b *Bucket) Publish(ctx context.Context, kind, version string, linux bool) error {
	systems := map[string][]string{"windows": nil}
	if linux {
		systems["linux"] = []string{"kubeadm", "kubectl", "kubelet"}
	}
	for goos, programs := range systems {
		base := kind + "/" + version
		dir := b.Path(base + "/bin/" + goos + "/amd64")
		if err := Build(ctx, dir, Spec{Version: version, Programs: programs, GOOS: goos}); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return err
		}
		archive := b.Path(base + "/kubernetes-node-" + goos + "-amd64.tar.gz")
		if err := pack(archive, files); err != nil {
			return fmt.Errorf("packing an archive: %w", err)
		}
		if err := writeSums(append(files, archive)...); err != nil {
			return err
		}
	}
	return nil
}

// PublishControlPlane builds the programs of a control plane's images and puts
// them beside the others of a version, with checksums and without an archive.
func (b *Bucket) PublishControlPlane(ctx context.Context, kind, version, goarch string) error {
	dir := b.Path(kind + "/" + version + "/bin/linux/" + goarch)
	programs := []string{"kube-apiserver", "kube-controller-manager", "kube-log-runner", "kube-proxy", "kube-scheduler"}
	if err := Build(ctx, dir, Spec{Version: version, Programs: programs, GOOS: "linux", GOARCH: goarch}); err != nil {
		return err
	}
	var files []string
	for _, p := range programs {
		files = append(files, filepath.Join(dir, p))
	}
	return writeSums(files...)
}

// Add puts an object with its checksums.
func (b *Bucket) Add(object string, data []byte) error {
	if err := b.put(object, data); err != nil {
		return err
	}
	return writeSums(b.Path(object))
}

func (b *Bucket) put(object string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(b.Path(object)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.Path(object), data, 0o644)
}

// writeSums writes FILE.sha256 and FILE.sha512, as they are published: digits
// and nothing else.
func writeSums(files ...string) error {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file+".sha256", fmt.Appendf(nil, "%x", sha256.Sum256(data)), 0o644)
		}
		if err == nil {
			err = os.WriteFile(file+".sha512", fmt.Appendf(nil, "%x", sha512.Sum512(data)), 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing checksums: %w", err)
		}
	}
	return nil
}

// pack writes a node archive.
func pack(archive string, files []string) error {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: "kubernetes/node/bin/" + filepath.Base(file), Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// ServeHTTP answers for an object or, at the root, for a list of builds.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	b.mu.Lock()
	if r.Method != http.MethodHead {
		b.asked[object]++
	}
	n, fault := b.asked[object], b.faults[object]
	b.mu.Unlock()
	switch {
	case fault != nil && fault(w, r, n):
	case object == "":
		b.list(w, r.URL.Query().Get("prefix"), r.URL.Query().Get("marker"))
	default:
		http.ServeFile(w, r, b.Path(object))
	}
}

// list answers as object stores do, two builds a page.
func (b *Bucket) list(w http.ResponseWriter, prefix, marker string) {
	type entry struct{ Prefix string }
	var page struct {
		XMLName        xml.Name `xml:"ListBucketResult"`
		IsTruncated    bool
		NextMarker     string
		CommonPrefixes []entry
	}
	entries, err := os.ReadDir(b.Path(path.Dir(prefix)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	var names []string
	for _, e := range entries {
		if name := path.Dir(prefix) + "/" + e.Name() + "/"; e.IsDir() && strings.HasPrefix(name, prefix) && name > marker {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > 2 {
		page.IsTruncated, page.NextMarker, names = true, names[1], names[:2]
	}
	for _, n := range names {
		page.CommonPrefixes = append(page.CommonPrefixes, entry{n})
	}
	w.Header().Set("Content-Type", "application/xml")
	data, err := xml.Marshal(page)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
