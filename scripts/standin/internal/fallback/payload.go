package fallback

import (
	"context"
	"crypto/sha256"
	"debug/pe"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// File is one file of the payload.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// CopyPayload does what the node's boot task does: the files that payload.json
// on the payload partition lists go to C:\k where they differ, checked.
func CopyPayload(ctx context.Context, env *Env, label string) (err error) {
	part, err := payloadPartition(ctx, env, label)
	if err != nil || part == nil {
		return err
	}
	mount := filepath.Join(env.C, state.Dir, "payload")
	if err := os.MkdirAll(mount, 0o755); err != nil {
		return err
	}
	if err := env.Machine.MountPartition(ctx, part.Number, mount); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Machine.Unmount(mount)) }()
	data, err := os.ReadFile(filepath.Join(mount, "payload.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was put there yet
	}
	if err != nil {
		return fmt.Errorf("reading the payload's list: %w", err)
	}
	var files []File
	if err := json.Unmarshal(data, &files); err != nil {
		return fmt.Errorf("reading the payload's list: %w", err)
	}
	target := filepath.Join(env.C, "k")
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := copyChecked(filepath.Join(mount, f.Name), filepath.Join(target, f.Name), f); err != nil {
			return fmt.Errorf("copying %s: %w", f.Name, err)
		}
	}
	return nil
}

// copyChecked copies a file unless it is there; it appears only when it is right.
func copyChecked(from, to string, f File) error {
	if !filepath.IsLocal(f.Name) || strings.ContainsAny(f.Name, `/\`) {
		return fmt.Errorf("%q is not a file's name", f.Name)
	}
	if digest, size, err := digestOf(to); err == nil && digest == f.SHA256 && size == f.Size {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to + ".wbox-new")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if digest, size, err := digestOf(out.Name()); err != nil || digest != f.SHA256 || size != f.Size {
		return errors.Join(err, fmt.Errorf("%d bytes with the SHA-256 %s instead of %d with %s", size, digest, f.Size, f.SHA256))
	}
	return os.Rename(out.Name(), to)
}

func digestOf(path string) (string, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

// testPayload proves that C:\k holds exactly the listed files, each a program
// for amd64.
func testPayload(_ context.Context, env *Env, p params) (string, error) {
	var files []File
	if err := p.get("files", &files); err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("parameters.json lacks 'files' for this script")
	}
	k := filepath.Join(env.C, "k")
	var missing []string
	known := map[string]bool{}
	for _, f := range files {
		known[strings.ToLower(f.Name)] = true
		if fault := proveFile(filepath.Join(k, f.Name), f); fault != "" {
			missing = append(missing, fault)
		}
	}
	entries, err := os.ReadDir(k)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if !known[strings.ToLower(e.Name())] {
			missing = append(missing, `C:\k\`+e.Name()+" is not of the payload")
		}
	}
	return strings.Join(missing, "; "), nil
}

func proveFile(path string, f File) string {
	digest, size, err := digestOf(path)
	if err != nil {
		return `there is no C:\k\` + f.Name
	}
	if digest != f.SHA256 || size != f.Size {
		return fmt.Sprintf(`C:\k\%s has %d bytes with the SHA-256 %s instead of %d with %s`, f.Name, size, digest, f.Size, f.SHA256)
	}
	if !strings.EqualFold(filepath.Ext(f.Name), ".exe") {
		return ""
	}
	program, err := pe.Open(path)
	if err != nil {
		return fmt.Sprintf(`C:\k\%s is no PE program: %v`, f.Name, err)
	}
	defer program.Close()
	if program.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		return fmt.Sprintf(`C:\k\%s is for machine 0x%04x`, f.Name, program.Machine)
	}
	return ""
}
