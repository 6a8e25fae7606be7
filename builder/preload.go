package builder

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/ctxio"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/network"
	"github.com/wbox-dev/wbox/builder/quirks"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/preload"
	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/archive"
)

// preloads finds out what --preload stands for.
type preloads struct {
	client  *images.Client
	host    images.Platform    // of the box's Windows
	mirrors []network.Registry // where images are pulled from instead
	pinned  *lock.Lock         // what the lock says, where it counts
	offline bool
}

// imageInput is how a lock and a manifest call an image.
func imageInput(name string) string { return "image " + name }

// resolvePreload turns every word of --preload into pinned images. It needs to
// know the medium: which image runs depends on its build.
func (r *Resolved) resolvePreload(ctx context.Context, opts ResolveOptions, pinned *lock.Lock) error {
	if len(r.Spec.Preload) == 0 {
		return nil
	}
	if s := r.Media.StandIn; s != nil && s.PowerShell != "" && s.Containerd == "" {
		return &fault.Problem{Class: fault.Input, Field: "--preload", Value: strings.Join(r.Spec.Preload, ","), Why: "can't be imported by this stand-in, which has no containerd",
			Fix: "make the stand-in's medium with -containerd /usr/bin"}
	}
	p := &preloads{client: opts.Images, offline: opts.Offline, mirrors: r.Spec.Registries,
		host: images.Platform{OS: "windows", Architecture: "amd64", Build: strconv.Itoa(r.Edition.Build)}}
	if p.client == nil {
		p.client = images.NewClient(images.ClientOptions{})
	}
	if pinned != nil && (opts.Pins.Frozen || opts.Offline) {
		p.pinned = pinned
	}
	var problems []error
	seen := map[string]bool{}
	words, err := pluginImages(r.Spec.Preload, r.Spec.CNI)
	if err != nil {
		return err
	}
	for _, word := range words {
		a, err := p.archive(ctx, word, r.Edition.Build)
		if err == nil {
			for _, i := range a.Images {
				if seen[i.Name] {
					err = &fault.Problem{Class: fault.Usage, Field: "--preload", Value: word, Why: "brings " + i.Name + " a second time", Fix: "name an image once"}
				}
				seen[i.Name] = true
			}
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		r.preload = append(r.preload, a)
	}
	return errors.Join(problems...)
}

// pluginImages puts in place of "cni" and of a plugin's release such as
// calico@v3.32.0 the images that Windows nodes pull of it.
func pluginImages(words []string, cni string) ([]string, error) {
	var out []string
	for _, word := range words {
		plugin := word
		if word == "cni" {
			plugin = cni
		}
		name, _, _ := strings.Cut(plugin, "@")
		if word != "cni" && !slices.Contains([]string{"calico", "antrea", "flannel"}, name) {
			out = append(out, word)
			continue
		}
		list, err := images.ParseCNI(plugin, true)
		if err != nil {
			err = forWord(err, word)
			var no *fault.Problem
			if errors.As(err, &no) {
				no.Fix = "name its release, such as --preload calico@v3.32.0, or each image"
			}
			return nil, err
		}
		for _, i := range list {
			if i.OS == "windows" {
				out = append(out, i.Name)
			}
		}
	}
	return out, nil
}

// archive resolves one word.
func (p *preloads) archive(ctx context.Context, word string, build int) (preload.Archive, error) {
	switch {
	case strings.HasSuffix(word, ".tar"):
		return p.file(ctx, word, build)
	case word == "pause":
		return p.pull(ctx, word, quirks.PauseImage(build))
	case word == "nanoserver" || word == "servercore":
		name := images.WindowsBase(word, build)
		if name == "" {
			return preload.Archive{}, &fault.Problem{Class: fault.Usage, Field: "--preload", Value: word, Why: fmt.Sprintf("is not known for Windows of build %d", build),
				Fix: "name the image with its registry and tag"}
		}
		return p.pull(ctx, word, name)
	}
	return p.pull(ctx, word, word)
}

// pull resolves a name in a registry. word is what the user wrote for it.
func (p *preloads) pull(ctx context.Context, word, name string) (preload.Archive, error) {
	ref, err := p.client.Parse("--preload", name)
	if err != nil {
		return preload.Archive{}, err
	}
	if strings.Contains(name, "@") {
		return preload.Archive{}, &fault.Problem{Class: fault.Usage, Field: "--preload", Value: word, Why: "names a digest, and pods ask for a tag",
			Fix: "name the tag; the digest that it stands for is kept in wbox.lock"}
	}
	from, err := p.client.Parse("--registry", mirrored(name, p.mirrors))
	if err != nil {
		return preload.Archive{}, err
	}
	if digest := p.digest(name); digest != "" {
		if from, err = p.client.Parse("--preload", from.Context().Name()+"@"+digest); err != nil {
			return preload.Archive{}, err
		}
		return p.pulled(name, from, digest), nil
	}
	if p.offline {
		no := fetch.RefuseOffline(name)
		no.Field = "--preload"
		return preload.Archive{}, no
	}
	m, err := images.Select(ctx, p.client.Remote(from), []images.Platform{p.host})
	if err != nil {
		return preload.Archive{}, forWord(err, word)
	}
	if from, err = p.client.Parse("--preload", from.Context().Name()+"@"+m.Digest.String()); err != nil {
		return preload.Archive{}, err
	}
	img, err := images.Load(ctx, p.client.Remote(from), p.host)
	if err != nil {
		return preload.Archive{}, forWord(err, word)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return preload.Archive{}, forWord(err, word)
	}
	if err := p.runs(word, ref.Name(), config.OS, config.OSVersion); err != nil {
		return preload.Archive{}, err
	}
	return p.pulled(name, from, m.Digest.String()), nil
}

// forWord lets a Problem say what of --preload it is about.
func forWord(err error, word string) error {
	var p *fault.Problem
	if errors.As(err, &p) {
		about := *p
		about.Field, about.Value = "--preload", word
		if p.Value != "" && p.Value != word {
			about.Why = p.Value + " " + p.Why
		}
		return &about
	}
	return fmt.Errorf("looking up %s: %w", word, err)
}

// digest is what the lock says that a name stands for.
func (p *preloads) digest(name string) string {
	if p.pinned == nil {
		return ""
	}
	return p.pinned.Inputs[imageInput(name)].Digest
}

// pulled is an archive that is written from a registry, by digest.
func (p *preloads) pulled(name string, from images.Reference, digest string) preload.Archive {
	return preload.Archive{Images: []preload.Image{{Name: name, Digest: digest, File: archiveName(name, digest)}},
		Get: func(ctx context.Context, _ *stage.Work, path string) (map[string]string, error) {
			saved, err := archive.Save(ctx, path, []archive.Entry{{Names: []string{name}, Source: p.client.Remote(from)}}, archive.Options{})
			if err != nil {
				return nil, err
			}
			return map[string]string{name: saved[0].Digest}, nil
		}}
}

// file resolves an archive that the user has. What it holds is checked when it
// is copied, too: it may have changed by then.
func (p *preloads) file(ctx context.Context, file string, build int) (preload.Archive, error) {
	members, err := archive.Inspect(ctx, "--preload", file)
	if err != nil {
		return preload.Archive{}, err
	}
	whole, err := digestOf(ctx, file)
	if err != nil {
		return preload.Archive{}, err
	}
	a := preload.Archive{}
	for _, m := range members {
		for _, on := range m.Platforms {
			if err := p.runs(file, m.Name, on.OS, on.OSVersion); err != nil {
				return preload.Archive{}, err
			}
		}
		if len(m.Platforms) != 1 {
			return preload.Archive{}, &fault.Problem{Class: fault.Input, Field: "--preload", Value: file,
				Why: fmt.Sprintf("holds %s for %d systems, and a box needs one", m.Name, len(m.Platforms)), Fix: fmt.Sprintf("write it for windows/amd64:%d only", build)}
		}
		a.Images = append(a.Images, preload.Image{Name: m.Name, Digest: m.Digest, File: archiveName(filepath.Base(file), whole)})
	}
	a.Get = func(ctx context.Context, _ *stage.Work, to string) (map[string]string, error) {
		if err := copyFile(ctx, file, to); err != nil {
			return nil, err
		}
		again, err := archive.Inspect(ctx, "--preload", to)
		got := map[string]string{}
		for _, m := range again {
			got[m.Name] = m.Digest
		}
		return got, err
	}
	return a, nil
}

func digestOf(ctx context.Context, file string) (string, error) {
	digest, _, err := cas.DigestFile(ctx, file)
	if err != nil {
		return "", &fault.Problem{Class: fault.Input, Field: "--preload", Value: file, Why: "can't be read", Err: err, Fix: "name an archive of images"}
	}
	return digest, nil
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, ctxio.Reader(ctx, in))
	return errors.Join(err, out.Close())
}

// runs refuses an image that the box's Windows can't run.
func (p *preloads) runs(word, name, system, version string) error {
	host, err := strconv.Atoi(p.host.Build)
	if err != nil {
		return fmt.Errorf("reading the build %s of the medium: %w", p.host.Build, err)
	}
	no := &fault.Problem{Class: fault.Input, Field: "--preload", Value: word}
	switch image := images.BuildOf(version); {
	case system != "windows":
		no.Why, no.Fix = name+" is made for "+system, "name an image for Windows"
	case image != 0 && !images.RunsOn(host, image):
		no.Why, no.Fix = fmt.Sprintf("%s is made for Windows of build %d, and the box has build %d", name, image, host), "name an image for that build"
	default:
		return nil
	}
	return no
}

// mirrored is where an image is pulled from: the first mirror of its registry
// that nodes would use too.
func mirrored(name string, registries []network.Registry) string {
	host, rest, _ := strings.Cut(name, "/")
	for _, r := range registries {
		if (r.Host != host && r.Host != "_default") || len(r.Mirrors) == 0 {
			continue
		}
		u, err := url.Parse(r.Mirrors[0])
		if err != nil {
			continue // Validate has refused it
		}
		return u.Host + "/" + strings.TrimPrefix(path.Join(strings.Trim(u.Path, "/"), rest), "/")
	}
	return name
}

var notInFileNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// archiveName is the name of an image's archive on the seed: for people, and
// told apart by a digest.
func archiveName(name, digest string) string {
	base := strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], ".tar")
	base = strings.Trim(notInFileNames.ReplaceAllString(base, "-"), "-.")
	if base == "" {
		base = "image"
	}
	sum := sha256.Sum256([]byte(name + " " + digest))
	return fmt.Sprintf("%s-%x.tar", base[:min(len(base), 32)], sum[:6])
}
