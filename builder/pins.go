package builder

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/builder/stages/preload"
)

// Pins say to which lock a build is held.
type Pins struct {
	Path    string // Optional: the lock's file. Default: no lock is read, and none is made.
	Frozen  bool   // anything that is not as the lock says is an error
	Refresh string // Optional: the command that makes the lock anew, for messages
}

// Lock is what a Spec's names stand for, beside what they stood for.
type Lock struct {
	Path    string        // of the file
	Exists  bool          // the file is there
	Changes []lock.Change // what has to change in it; empty: it is current
	now     *lock.Lock
}

// Stale says whether the file is there and says something else than what holds.
func (l *Lock) Stale() bool { return l.Exists && len(l.Changes) > 0 }

// Write makes the file say what holds, in a folder that is made where it does
// not exist. A file that says so already is not touched.
func (l *Lock) Write(ctx context.Context) error {
	if l.Exists && len(l.Changes) == 0 {
		return nil
	}
	data, err := l.now.Encode()
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(l.Path), 0o755); err == nil {
		err = atomicfile.Write(ctx, l.Path, data, 0o644)
	}
	if err != nil && ctx.Err() == nil {
		p := &fault.Problem{Class: fault.Host, Field: "lock", Value: l.Path, Why: "can't be written", Err: err,
			Fix: "name another with --lock FILE"}
		if capacity.IsFull(err) {
			p.Fix = "make room, or " + p.Fix
		}
		return p
	}
	return err
}

// read returns the lock as it is, nil where there is none. With Frozen, none
// and one of another selection are *fault.Problems of class fault.Usage.
func (p Pins) read(s *spec.Spec) (*lock.Lock, error) {
	if p.Path == "" {
		return nil, nil
	}
	old, err := lock.Read(p.Path)
	if err != nil || !p.Frozen {
		return old, err
	}
	if old == nil {
		return nil, p.refuse(fault.Usage, "does not exist, so nothing is pinned", "make it")
	}
	if c := lock.New(s.Selection(), old.Resolved, old.Inputs).Diff(old); len(c) > 0 {
		return nil, p.refuse(fault.Usage, "was made for another selection ("+few(c)+")", "make it anew")
	}
	return old, nil
}

func (p Pins) refuse(class fault.Class, why, fix string) error {
	refresh := p.Refresh
	if refresh == "" {
		refresh = "wbox lock"
	}
	return &fault.Problem{Class: class, Field: "--frozen", Value: p.Path, Why: why, Fix: fix + " with: " + refresh}
}

// few writes the first of many changes.
func few(changes []lock.Change) string {
	const most = 4
	var out []string
	for _, c := range changes[:min(most, len(changes))] {
		out = append(out, c.String())
	}
	if len(changes) > most {
		out = append(out, fmt.Sprintf("and %d more", len(changes)-most))
	}
	return strings.Join(out, ", ")
}

// pin compares what was resolved with the lock. With Frozen, a difference is a
// *fault.Problem of class fault.Input.
func (r *Resolved) pin(p Pins, old *lock.Lock) error {
	if p.Path == "" || r.pending != nil {
		return nil
	}
	now := r.lock()
	l := &Lock{Path: p.Path, Exists: old != nil, now: now}
	if old == nil {
		old = &lock.Lock{}
	}
	now.Keep(old)
	l.Changes = now.Diff(old)
	if p.Frozen && len(l.Changes) > 0 {
		return p.refuse(fault.Input, fmt.Sprintf("pins something else than what was found (%s)", few(l.Changes)), "use what is pinned, or pin what was found")
	}
	r.Lock = l
	return nil
}

// ourFlags is an input of Kubernetes that comes from wbox itself.
const ourFlags = "build-flags"

// lock returns what r's names stand for. Names are those of the manifest.
func (r *Resolved) lock() *lock.Lock {
	resolved := map[string]string{}
	inputs := map[string]lock.Input{
		"iso": {Digest: r.ISODigest, Size: r.Media.Size, Source: source(cmp.Or(r.isoSource, r.Spec.ISO))},
	}
	for _, i := range preload.Images(r.preload) {
		inputs[imageInput(i.Name)] = lock.Input{Digest: i.Digest}
	}
	r.cni.pin(cniPrefix, resolved, inputs)
	r.runtime.pin(runtimePrefix, resolved, inputs)
	resolved[requestKey] = pinnedRequest(r.Spec.K8s, r.Ref)
	prefix := "kubernetes"
	for ref := &r.Ref; ref != nil; ref = ref.Base {
		resolved[prefix] = ref.Version
		resolved[prefix+" commit"] = ref.Commit
		resolved[prefix+" date"] = ref.BuildDate
		resolved[prefix+" toolchain"] = ref.Toolchain
		for name, digest := range ref.Inputs {
			switch {
			case name == ourFlags:
			case lock.IsDigest(digest):
				inputs[prefix+" "+name] = r.kubeInput(ref, name, digest)
			default:
				resolved[prefix+" "+name] = digest
			}
		}
		prefix = "kubernetes base"
	}
	return lock.New(r.Spec.Selection(), resolved, inputs)
}

// kubeInput describes an input of Kubernetes.
func (r *Resolved) kubeInput(ref *kube.Ref, name, digest string) lock.Input {
	in := lock.Input{Digest: digest, Source: ref.Source}
	if fi, err := os.Stat(filepath.Join(r.Spec.K8s, name)); ref.Source == "dir" && err == nil {
		in.Size = fi.Size()
	}
	return in
}

// requestKey is where a lock keeps the request that gives the same Kubernetes
// again, for a request that will give another one some day.
const requestKey = "kubernetes request"

// pinnedRequest returns what asks for ref itself, or "" where text does.
func pinnedRequest(text string, ref kube.Ref) string {
	text = spec.Public(strings.TrimSpace(text))
	switch ref.Source {
	case "release", "ci":
		if !strings.Contains(text, strings.TrimPrefix(ref.Version, "v")) {
			return ref.Source + "/" + ref.Version
		}
	case "module":
		if !strings.Contains(text, strings.TrimPrefix(ref.Version, "v")) {
			return ref.Version
		}
	case "git":
		switch at := strings.LastIndex(text, "@"); {
		case strings.Contains(text, ref.Commit):
		case !strings.HasPrefix(text, "git:"):
			return ref.Commit
		case at < 0 || strings.ContainsAny(text[at:], ":/"): // the "@" of a user, not of a ref
			return text + "@" + ref.Commit
		default:
			return text[:at] + "@" + ref.Commit
		}
	}
	return ""
}

// request is what is asked of Kubernetes' sources: where nothing may change, what
// the lock says that the name stood for.
func (p Pins) request(text string, pinned *lock.Lock) string {
	if p.Frozen && pinned != nil && pinned.Resolved[requestKey] != "" {
		return pinned.Resolved[requestKey]
	}
	return text
}

// source is how a lock names a file, a folder or a URL: not by its path, which
// differs between machines.
func source(path string) string {
	if strings.Contains(path, "://") {
		return spec.Public(path)
	}
	return filepath.Base(path)
}
