package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/builder/network"
	"github.com/wbox-dev/wbox/builder/stages/libvirt"
	"github.com/wbox-dev/wbox/builder/stages/proof"
)

// lockFile is held in the output folder while a build may write there.
const lockFile = ".wbox.lock"

// LockOutput makes the output folder, where it does not exist, and holds it
// until release is called. What a run that died has left unfinished there is
// removed. Another build that holds it is a *fault.Problem of class fault.Busy
// that names its process; a folder that can't be written one of class fault.Host.
func LockOutput(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, unwritableOutput(dir, err)
	}
	l, err := cas.TryLockFile(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, unwritableOutput(dir, err)
	}
	if l == nil {
		why := "another build writes there"
		if by := cas.ReadNote(filepath.Join(dir, lockFile)); by != "" {
			why += ", " + by
		}
		return nil, &fault.Problem{Class: fault.Busy, Field: "-o", Value: dir, Why: why, Fix: "wait for it, or name another folder"}
	}
	if err := sweepOutput(dir); err != nil {
		l.Unlock()
		return nil, unwritableOutput(dir, err)
	}
	l.Note(holder())
	return l.Unlock, nil
}

// holder says who this process is, for those that wait for it.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("process %d on %s, since %s", os.Getpid(), host, time.Now().UTC().Format("2006-01-02 15:04 MST"))
}

// sweepOutput removes what a run that died has left unfinished in an output
// folder that nobody else writes to now.
func sweepOutput(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), atomicfile.TempPrefix) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func unwritableOutput(dir string, err error) error {
	if capacity.IsFull(err) {
		return &fault.Problem{Class: fault.Host, Field: "-o", Value: dir, Why: diskIsFull, Err: err, Fix: outputFull}
	}
	return &fault.Problem{Class: fault.Host, Field: "-o", Value: dir, Why: "is not writable", Err: err, Fix: "name a folder that you may write to"}
}

// checkOutput refuses an output folder that can't be written, or holds files
// that are not ours. It writes nothing: a folder that doesn't exist is fine if
// the nearest one above it may be written.
func checkOutput(dir string) error {
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Lstat(dir); err == nil {
			return &fault.Problem{Class: fault.Usage, Field: "-o", Value: dir, Why: "is a link that leads nowhere", Fix: "name a folder"}
		}
		return checkCreatable(dir)
	case err != nil:
		return unwritableOutput(dir, err)
	case !fi.IsDir():
		return &fault.Problem{Class: fault.Usage, Field: "-o", Value: dir, Why: "is a file", Fix: "name a folder"}
	}
	foreign, err := box.Foreign(dir)
	if err != nil {
		return unwritableOutput(dir, err)
	}
	if len(foreign) > 0 {
		return &fault.Problem{Class: fault.Usage, Field: "-o", Value: dir,
			Why: fmt.Sprintf("holds files that wbox did not write (%s)", some(foreign)), Fix: "name an empty folder, or one that wbox has made"}
	}
	return probeOutput(dir, dir)
}

// checkCreatable looks at the nearest folder above dir that exists.
func checkCreatable(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return unwritableOutput(dir, err)
	}
	for up := filepath.Dir(abs); ; up = filepath.Dir(up) {
		fi, err := os.Stat(up)
		if err == nil && !fi.IsDir() {
			return unwritableOutput(dir, fmt.Errorf("%s is a file", up))
		}
		if err == nil {
			return probeOutput(dir, up)
		}
		if !errors.Is(err, os.ErrNotExist) || up == filepath.Dir(up) {
			return unwritableOutput(dir, err)
		}
	}
}

// probeOutput tries to write where the output folder is, or will be.
func probeOutput(dir, where string) error {
	if err := probeWritable(where); err != nil {
		return unwritableOutput(dir, err)
	}
	return nil
}

// probeWritable tries to write into a folder.
func probeWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".wbox-probe-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// checkVersion refuses what Publish would refuse after all the work: an output
// folder whose catalog is another box's, or offers another box under this
// version already. No two bakes give the same bytes, so a layer that is yet to
// be made means another box.
func checkVersion(ctx context.Context, r *Resolved, planned []engine.Planned) error {
	before, err := box.Published(ctx, r.Spec.Output, r.BoxName, r.Version)
	if err != nil || before == "" {
		return err
	}
	for _, p := range planned {
		if needsVM(p.Stage) && p.Stage.Name() != proof.Name && p.Status == engine.Miss {
			why := ""
			if r.Aged() != "" {
				why = " (" + r.Aged() + ")"
			}
			return &fault.Problem{Class: fault.Usage, Field: "--revision", Value: r.Version,
				Why: "is a box that " + r.Spec.Output + " holds already, and this build would make another one" + why + "; a published version never changes",
				Fix: "use a higher --revision, or another output folder"}
		}
	}
	return nil
}

// some writes the first of many names.
func some(names []string) string {
	const most = 3
	sort.Strings(names)
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Published is what a build left in its output folder.
type Published struct {
	Catalog  string `json:"catalog"`  // path of the catalog that "vagrant box add" reads
	Box      string `json:"box"`      // path of the box
	Manifest string `json:"manifest"` // path of the manifest
	Name     string `json:"name"`     // OWNER/BOX
	Version  string `json:"version"`
	Provider string `json:"provider"`
	SHA256   string `json:"sha256"` // of the box
	UpToDate bool   `json:"upToDate"`
	// Network is the path of what nodes must be told of the network, "" where there is nothing.
	Network string `json:"network,omitempty"`
	// GuestScripts is "powershell", or "not executed" where a stand-in answered for them.
	GuestScripts string `json:"guestScripts"`
	// LicenceClock is that of the Windows inside, Licence the same for people.
	LicenceClock licence.Record `json:"licenceClock"`
	Licence      string         `json:"licence"`
}

// Publish puts the box into the output folder, then the catalog that names it,
// then its manifest, each complete and by rename; what is missing of an earlier
// attempt is written again. A version that is there already with other bytes is
// refused. A full disk is as for Build.
func (b *Builder) Publish(ctx context.Context, built *Built) (_ *Published, err error) {
	r := built.Resolved
	defer func() { err = b.full(err, r.Spec.Output) }()
	out, err := filepath.Abs(r.Spec.Output)
	if err != nil {
		return nil, err
	}
	before, err := box.Published(ctx, out, r.BoxName, r.Version)
	if err != nil {
		return nil, err
	}
	entry := box.Entry{Name: r.BoxName, Version: r.Version, Box: built.boxPath, SHA256: built.boxDigest(), Kubernetes: r.Ref.Version,
		Licence: r.licence(), Clock: built.clock.Ends(), StandIn: r.Media.StandIn != nil}
	if !entry.StandIn {
		entry.Windows = "Windows Server " + r.Spec.Windows
	}
	catalog, err := box.Publish(ctx, out, entry)
	if errors.Is(err, box.ErrChanged) { // on this disk: the result is marked, and what it says is better
		key := filepath.Base(filepath.Dir(built.boxPath))
		if told := b.store.VerifyOutput(ctx, key, libvirt.Output); told != nil {
			err = told
		}
	}
	if err != nil {
		return nil, err
	}
	p := &Published{Catalog: catalog, Box: filepath.Join(out, box.FileName(r.BoxName, r.Version)),
		Manifest: filepath.Join(out, box.ManifestName(r.BoxName, r.Version)), Name: r.BoxName, Version: r.Version, Provider: libvirt.Name,
		SHA256: built.boxDigest(), UpToDate: built.UpToDate() && before != "", GuestScripts: r.GuestScripts(),
		LicenceClock: built.clock, Licence: built.LicenceText()}
	if p.Network, err = writeNetwork(ctx, out, r.Spec.Network()); err != nil {
		return nil, err
	}
	if before == "" || !exists(p.Manifest) {
		return p, writeManifest(ctx, p.Manifest, built.manifest(p))
	}
	return p, nil
}

// writeNetwork writes what nodes must be told of the network beside the box, or
// removes what an earlier build wrote. Only its owner may read it: it may hold
// a proxy's password. The box itself stays the same.
func writeNetwork(ctx context.Context, dir string, s network.Settings) (string, error) {
	path := filepath.Join(dir, box.NetworkFile)
	if !s.Node() {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("removing what an earlier build said of the network: %w", err)
		}
		return "", nil
	}
	data, err := s.NodeFile()
	if err != nil {
		return "", err
	}
	if err := atomicfile.Write(ctx, path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing down the network: %w", err)
	}
	return path, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (b *Built) boxDigest() string {
	for _, s := range b.Stages {
		if s.Stage == libvirt.Name {
			return strings.TrimPrefix(s.Outputs[libvirt.Output].Digest, "sha256:")
		}
	}
	return ""
}
