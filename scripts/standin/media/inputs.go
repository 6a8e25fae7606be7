package media

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// module is the Go module that the guest's programs are built from.
const module = "github.com/wbox-dev/wbox"

// efiStub is systemd's boot stub, the head of a unified kernel image.
const efiStub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// inputs are the sources of one medium.
type inputs struct {
	release    release
	cache      string // folder of downloads
	source     string // folder scripts/standin of this module
	deb        string // the kernel package
	init       string // the guest's program
	ps         string // PowerShell's archive or folder; empty for none
	psVersion  string
	ctr        string // the folder of containerd; empty for none
	ctrVersion string
	libraries  []library // what PowerShell is linked against
	scratch    string
}

// collect finds all inputs, downloading the kernel and compiling the guest's
// program. The caller closes them.
func collect(ctx context.Context, opts Options) (*inputs, error) {
	rel, err := releaseOf(opts.Release)
	if err != nil {
		return nil, err
	}
	if missing := Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("this machine lacks %s", strings.Join(missing, ", "))
	}
	in := &inputs{release: rel, cache: opts.Cache, ps: opts.PowerShell, ctr: opts.Containerd}
	if in.cache == "" {
		if in.cache, err = DefaultCache(); err != nil {
			return nil, err
		}
	}
	dir, err := run(ctx, "", "go", "list", "-f", "{{.Dir}}", module+"/scripts/standin/media")
	if err != nil {
		return nil, fmt.Errorf("finding the stand-in's sources: %w", err)
	}
	in.source = filepath.Dir(strings.TrimSpace(string(dir)))
	if in.deb, err = kernelPackage(ctx, in.cache); err != nil {
		return nil, err
	}
	if in.scratch, err = os.MkdirTemp("", "standin-inputs-"); err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	if err := in.compile(ctx); err != nil {
		in.close()
		return nil, err
	}
	if in.ps != "" {
		if in.libraries, err = libraries(); err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}

func (in *inputs) close() { os.RemoveAll(in.scratch) }

// compile builds the guest's program: static, stripped, without paths or
// version control stamps, so that the same source gives the same bytes.
func (in *inputs) compile(ctx context.Context) error {
	in.init = filepath.Join(in.scratch, "init")
	_, err := run(ctx, in.source, "env", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "GOFLAGS=",
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", in.init, module+"/scripts/standin/cmd/init")
	if err != nil {
		return fmt.Errorf("compiling the guest's program: %w", err)
	}
	return nil
}

// key returns a digest of everything that the medium's bytes depend on.
func (in *inputs) key() (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "stand-in %s\nrelease %s\n", Version, in.release.name)
	paths := []string{in.deb, in.init, efiStub, filepath.Join(in.source, "media"), filepath.Join(in.source, "windows")}
	if in.ps != "" {
		paths = append(paths, in.ps)
	}
	if in.ctr != "" {
		for _, name := range containerdPrograms {
			paths = append(paths, filepath.Join(in.ctr, name))
		}
	}
	for _, lib := range in.libraries {
		paths = append(paths, lib.path)
	}
	for _, path := range paths {
		if err := hashPath(sum, path); err != nil {
			return "", fmt.Errorf("hashing the medium's inputs: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// hashPath adds names and contents of a file, or of all files below a folder,
// to w. A path that does not exist adds nothing.
func hashPath(w io.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return nil
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		fmt.Fprintf(w, "%q %d\n", rel, info.Size())
		_, err = io.Copy(w, file)
		return err
	})
}
