package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// urlSource takes programs from a web server: a kubelet.exe, a node archive, or
// a folder with programs. What it downloads is then looked at like a folder of
// the user's.
type urlSource struct {
	text string // without a slash at its end
	opts Options
}

func newURL(text string, opts Options) (Source, error) {
	const fix = "give https://HOST/kubelet.exe, https://HOST/kubernetes-node-windows-amd64.tar.gz or https://HOST/FOLDER"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil && strings.Contains(text, " "):
		return nil, versionProblem(field, fetch.Redact(text), "is no URL that can be read", fix)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, versionProblem(field, fetch.Redact(text), "is a URL of a kind that is not supported ("+u.Scheme+")", fix)
	case opts.ControlPlane != "":
		return nil, versionProblem(field, fetch.Redact(text), "holds programs for Windows nodes, none of a control plane", "give a git ref or a release")
	case opts.Linux || opts.Debug:
		return nil, versionProblem(field, fetch.Redact(text), "holds programs that are ready: --linux and --debug need the source", "give a git ref or a release")
	}
	return &urlSource{text: strings.TrimRight(text, "/"), opts: opts}, nil
}

// Resolve downloads the programs and pins them by their digests. Without the
// network they are those that were downloaded last.
func (s *urlSource) Resolve(ctx context.Context, sink report.Sink) (Ref, error) {
	w, err := newWeb(s.opts, DefaultBaseURL, sink)
	if err != nil {
		return Ref{}, err
	}
	dir := s.dir()
	if _, err := os.Stat(filepath.Join(dir, "kubelet.exe")); err != nil || !s.opts.Offline {
		if dir, err = s.download(ctx, w); err != nil {
			return Ref{}, err
		}
	}
	ref, err := (&dirSource{path: dir, opts: s.opts}).Resolve(ctx, sink)
	ref.Source = "url"
	return ref, err
}

// Fetch copies what Resolve downloaded, if it is still what the ref pins.
func (s *urlSource) Fetch(ctx context.Context, ref Ref, dir, scratch string, sink report.Sink) (Bits, error) {
	from := s.dir()
	if _, err := os.Stat(filepath.Join(from, "kubelet.exe")); err != nil {
		w, err := newWeb(s.opts, DefaultBaseURL, sink)
		if err != nil {
			return Bits{}, err
		}
		if from, err = s.download(ctx, w); err != nil {
			return Bits{}, err
		}
	}
	bits, err := (&dirSource{path: from, opts: s.opts}).Fetch(ctx, ref, dir, scratch, sink)
	for i, b := range bits.Binaries {
		if strings.HasPrefix(b.From, from) {
			bits.Binaries[i].From = fetch.Redact(s.text) + ", " + b.File
		}
	}
	return bits, err
}

// dir is where the programs of this URL lie.
func (s *urlSource) dir() string {
	sum := sha256.Sum256([]byte(s.text))
	return filepath.Join(s.opts.CacheDir, "url", hex.EncodeToString(sum[:12]))
}

// download gets the programs into a folder and returns it.
func (s *urlSource) download(ctx context.Context, w *web) (string, error) {
	dir := s.dir()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("making a folder for downloads: %w", err)
	}
	unlock, err := gosource.WaitForLock(ctx, dir+".lock", nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", fmt.Errorf("making room for a download: %w", err)
	}
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for a download: %w", err)
	}
	u, err := url.Parse(s.text)
	if err != nil {
		return "", fmt.Errorf("reading the URL: %w", err)
	}
	switch name := path.Base(u.Path); {
	case strings.HasSuffix(strings.ToLower(name), ".exe"):
		err = w.take(ctx, s.text, filepath.Join(fresh, "kubelet.exe"))
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		err = s.unpack(ctx, w, fresh)
	case strings.Contains(name, ".") && strings.HasSuffix(strings.ToLower(name), ".zip"):
		err = versionProblem(field, fetch.Redact(s.text), "is a zip archive, which is not supported", "unpack it and give the folder")
	default:
		err = s.folder(ctx, w, *u, fresh)
	}
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("replacing a download: %w", err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return "", fmt.Errorf("keeping a download: %w", err)
	}
	return dir, nil
}

// folder downloads the programs that a folder has, and what it says of its version.
func (s *urlSource) folder(ctx context.Context, w *web, u url.URL, dir string) error {
	at := func(name string) string {
		c := u
		c.Path, c.RawPath = strings.TrimRight(u.Path, "/")+"/"+name, ""
		return c.String()
	}
	for _, t := range (Options{}).targets(Programs()) {
		there, err := w.exists(ctx, at(t.file()))
		if err != nil {
			return err
		}
		if !there {
			if t.program == Kubelet {
				return versionProblem(field, fetch.Redact(s.text), "holds no kubelet.exe", "give the URL of a folder with the programs, or of kubelet.exe itself")
			}
			continue
		}
		if err := w.take(ctx, at(t.file()), filepath.Join(dir, t.file())); err != nil {
			return err
		}
	}
	if text, seen, err := w.text(ctx, at("version")); err == nil {
		return os.WriteFile(filepath.Join(dir, "version"), []byte(text), 0o644)
	} else if seen.status != 404 {
		return err
	}
	return nil
}

// unpack downloads a node archive and takes the programs out.
func (s *urlSource) unpack(ctx context.Context, w *web, dir string) error {
	archive := filepath.Join(dir, "archive.tar.gz")
	if err := w.take(ctx, s.text, archive); err != nil {
		return err
	}
	for _, t := range (Options{}).targets(Programs()) {
		err := extract(ctx, archive, (Options{}).memberOf(t), filepath.Join(dir, t.file()))
		if err != nil && (t.program == Kubelet || fault.ClassOf(err) != fault.Input) {
			return err
		}
	}
	_ = extract(ctx, archive, "kubernetes/version", filepath.Join(dir, "version")) // an archive need not say its version
	return os.Remove(archive)
}

// take downloads a file, checked against the checksum beside it where there is
// one.
func (w *web) take(ctx context.Context, from, to string) error {
	req := fetch.Request{URL: from, Path: to, Field: field, TrustFirstUse: true}
	if u, err := url.Parse(from); err == nil && u.RawQuery == "" {
		if body, _, err := w.text(ctx, from+".sha256"); err == nil {
			if fields := strings.Fields(body); len(fields) > 0 {
				req.Digest = fetch.Digest(fields[0])
			}
		} else if ctx.Err() != nil {
			return err
		}
	}
	_, err := w.client.Get(ctx, req)
	return err
}
