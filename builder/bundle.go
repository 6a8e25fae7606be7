package builder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/bake"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/media"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/componentbits"
	"github.com/wbox-dev/wbox/builder/stages/kubebits"
	"github.com/wbox-dev/wbox/builder/stages/preload"
)

// Bundled is a bundle that was made: a folder with a box file, its lock, and
// every file that the box file names. A build of it needs no network, and with a
// frozen lock refuses what is not as it was bundled.
type Bundled struct {
	Dir       string `json:"folder"` // absolute
	Version   string `json:"version"`
	ISODigest string `json:"isoDigest"`
	ISO       string `json:"iso,omitempty"` // below Dir, where it was asked for
	Size      int64  `json:"size"`          // bytes of all files
}

// Folders and files of a bundle beside the box file and the lock.
const (
	bundleKube       = "kubernetes"
	bundleContainerd = "containerd"
	bundleCNI        = "cni"
	bundleImages     = "images"
	bundleMedia      = "media"
)

// Bundle writes a bundle of what was resolved into a folder that does not exist
// yet or is empty; it appears when it is complete. withISO puts the
// installation medium into it too; without, a build takes that of the same
// digest from its store. What has to be compiled or downloaded is, into the store.
func (b *Builder) Bundle(ctx context.Context, r *Resolved, dir string, withISO bool) (_ *Bundled, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("finding the folder of the bundle: %w", err)
	}
	defer func() { err = b.full(err, dir) }()
	if err := CheckBundle(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, &fault.Problem{Class: fault.Host, Field: "-o", Value: dir, Why: "can't be made", Err: err, Fix: "name another folder"}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), atomicfile.TempPrefix+"bundle-")
	if err != nil {
		return nil, &fault.Problem{Class: fault.Host, Field: "-o", Value: dir, Why: "can't be written", Err: err, Fix: "name another folder"}
	}
	defer os.RemoveAll(tmp) // nothing is there any more once it was renamed
	w := &bundle{Builder: b, r: r, dir: tmp, spec: *r.Spec}
	for _, step := range []func(context.Context) error{w.results, w.boxFile} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	out := &Bundled{Dir: dir, Version: r.Ref.Version, ISODigest: r.ISODigest}
	if withISO {
		if out.ISO, err = w.medium(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.lockFile(ctx); err != nil {
		return nil, err
	}
	if out.Size, err = treeSize(tmp); err != nil {
		return nil, fmt.Errorf("measuring the bundle: %w", err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, fmt.Errorf("finishing the bundle: %w", err)
	}
	if err := atomicfile.Dir(ctx, tmp, dir); errors.Is(err, atomicfile.ErrExists) {
		return nil, CheckBundle(dir)
	} else if err != nil {
		return nil, err
	}
	return out, nil
}

// CheckBundle refuses a folder that something lies in already.
func CheckBundle(dir string) error {
	entries, err := os.ReadDir(dir)
	p := &fault.Problem{Class: fault.Usage, Field: "-o", Value: dir, Fix: "name a new folder"}
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		p.Why, p.Err = "is no folder that can be read", err
	default:
		p.Why = "holds " + entries[0].Name() + ": a bundle is made into a new or empty folder"
	}
	return p
}

// bundle is a bundle being written.
type bundle struct {
	*Builder
	r    *Resolved
	dir  string
	spec spec.Spec // what the bundle's box file will say
}

// results gets the programs and the images through the stages
// that a build gets them with, so that nothing is made twice.
func (w *bundle) results(ctx context.Context) error {
	id, run, err := w.store.NewRun(time.Now())
	if err != nil {
		return err
	}
	e := &engine.Engine{Store: w.store, Sink: w.opts.Sink, RunID: id, Run: run}
	want := []string{kubebits.Name, preload.Name, componentbits.CNI, componentbits.Runtime} // all but the first only where they were asked for
	stages := slices.DeleteFunc(pipeline(w.r, bake.Host{}), func(s stage.Stage) bool { return !slices.Contains(want, s.Name()) })
	var targets []string
	for _, s := range stages {
		targets = append(targets, s.Name())
	}
	built, err := e.Build(ctx, stages, targets...)
	if err != nil {
		return err
	}
	from, err := w.outputPath(built, kubebits.Name, kubebits.Output)
	if err != nil {
		return err
	}
	to := filepath.Join(w.dir, bundleKube)
	if err := copyTree(ctx, from, to); err != nil {
		return fmt.Errorf("copying the programs of Kubernetes: %w", err)
	}
	if err := os.WriteFile(filepath.Join(to, "version"), []byte(w.r.Ref.Version+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	w.spec.K8s, w.spec.K8sBase, w.spec.K8sVersion = "./"+bundleKube, "", ""
	if err := errors.Join(w.programs(ctx, built, componentbits.Runtime, bundleContainerd, w.r.runtime), w.programs(ctx, built, componentbits.CNI, bundleCNI, w.r.cni)); err != nil {
		return err
	}
	if w.r.runtime.source != nil {
		w.spec.Containerd = "./" + bundleContainerd
	}
	if w.r.cni.source != nil {
		w.spec.CNI = w.r.cni.project + "@./" + bundleCNI
	}
	if len(w.r.preload) == 0 {
		return nil
	}
	if from, err = w.outputPath(built, preload.Name, preload.Output); err != nil {
		return err
	}
	if err := copyTree(ctx, from, filepath.Join(w.dir, bundleImages)); err != nil {
		return fmt.Errorf("copying the images: %w", err)
	}
	w.spec.Preload = nil
	for _, i := range preload.Images(w.r.preload) {
		if file := "./" + bundleImages + "/" + i.File; !slices.Contains(w.spec.Preload, file) {
			w.spec.Preload = append(w.spec.Preload, file)
		}
	}
	return nil
}

// programs copies those of a CNI or of the container runtime, and notes their
// version beside them.
func (w *bundle) programs(ctx context.Context, built []engine.Built, stageName, folder string, p programs) error {
	if p.source == nil {
		return nil
	}
	from, err := w.outputPath(built, stageName, componentbits.Output)
	if err != nil {
		return err
	}
	to := filepath.Join(w.dir, folder)
	if err := copyTree(ctx, from, to); err != nil {
		return fmt.Errorf("copying the programs of %s: %w", p.project, err)
	}
	if p.ref.Version == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(to, "version"), []byte(p.ref.Version+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the version of %s: %w", p.project, err)
	}
	return nil
}

// boxFile writes what is asked for. How a build runs, and the network around it,
// differ between machines and are left out.
func (w *bundle) boxFile(context.Context) error {
	w.spec.ISO = ""
	data, err := w.spec.Encode(fmt.Sprintf("A bundle: every input of this box but perhaps the medium (%s).\nBuild it with: wbox build --offline --frozen -f wbox.yaml", w.r.ISODigest),
		"k8s", "cni", "containerd", "preload", "windows", "edition", "providers", "name", "revision", "diskGiB")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, spec.DefaultFile), data, 0o644); err != nil {
		return fmt.Errorf("writing the box file: %w", err)
	}
	return nil
}

// medium copies the installation medium and lets the box file name it.
func (w *bundle) medium(ctx context.Context) (string, error) {
	name := filepath.Base(source(w.r.isoSource))
	if !strings.EqualFold(filepath.Ext(name), ".iso") {
		name = "windows-server-" + w.r.Spec.Windows + ".iso"
	}
	if err := os.Mkdir(filepath.Join(w.dir, bundleMedia), 0o755); err != nil {
		return "", fmt.Errorf("making a folder for the medium: %w", err)
	}
	rel := bundleMedia + "/" + name
	if err := copyFile(ctx, w.r.Media.Path, filepath.Join(w.dir, filepath.FromSlash(rel))); err != nil {
		return "", fmt.Errorf("copying the medium: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(w.dir, spec.DefaultFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", fmt.Errorf("writing the box file: %w", err)
	}
	_, err = fmt.Fprintf(f, "iso: %q\n", "./"+rel)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("writing the box file: %w", err)
	}
	return rel, nil
}

// lockFile resolves the bundle as it will be built, from nothing but the bundle
// and the medium, and pins what it finds. A bundle that lacks something is found
// out here, not on the machine without a network.
func (w *bundle) lockFile(ctx context.Context) error {
	s, err := spec.Load(spec.Layer{}, filepath.Join(w.dir, spec.DefaultFile), "")
	if err != nil {
		return fmt.Errorf("reading the bundle's box file: %w", err)
	}
	if s.ISO == "" {
		s.ISO = w.r.Media.Path
	}
	empty, err := os.MkdirTemp("", "wbox-bundle-")
	if err != nil {
		return fmt.Errorf("making a folder for the check: %w", err)
	}
	defer os.RemoveAll(empty)
	now, err := w.Resolve(ctx, s, ResolveOptions{Kube: kube.Options{CacheDir: empty, Offline: true}, PlanOnly: true, Offline: true,
		Media: media.Options{Offline: true, Sink: report.Discard}, Pins: Pins{Path: filepath.Join(w.dir, lock.FileName)}})
	if err != nil {
		return fmt.Errorf("checking the bundle without the network: %w", err)
	}
	if now.ISODigest != w.r.ISODigest || now.Ref.Version != w.r.Ref.Version {
		return fmt.Errorf("checking the bundle: it gives %s on %s, not %s on %s", now.Ref.Version, now.ISODigest, w.r.Ref.Version, w.r.ISODigest)
	}
	return now.Lock.Write(ctx)
}

// copyTree copies the regular files of a folder and of those in it.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.Mkdir(target, 0o755)
		case !d.Type().IsRegular():
			return &fault.Problem{Class: fault.Input, Field: "the bundle", Value: p, Why: "is no regular file", Fix: "replace it by one"}
		}
		return copyFile(ctx, p, target)
	})
}

// treeSize counts the bytes of a folder's files.
func treeSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			size += fi.Size()
		}
		return err
	})
	return size, err
}
