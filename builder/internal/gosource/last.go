package gosource

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// lastFile says of a folder of last programs what their digests are.
const lastFile = "digests.json"

// LastFolder is where the programs of a source tree's last compile are kept;
// flags names the flags that its compiles differ in. go build leaves a program
// that is there already as it is, if linking it anew would give the same bytes:
// it compares the build ID in it. Without that, one changed file costs a link of
// all programs.
func (s Settings) LastFolder(root, flags string) string {
	if s.CacheDir == "" || s.Anew {
		return ""
	}
	sum := sha256.Sum256([]byte(root + "\x00" + flags))
	return filepath.Join(s.CacheDir, "last", hex.EncodeToString(sum[:12]))
}

// taken is a program of the last compile, as it was put into the output folder.
type taken struct {
	info   os.FileInfo
	sha256 string
}

// takeLast puts the programs of the last compile into the output folder, by
// hard links: where there can be none, all programs are linked anew.
func (b *Build) takeLast() map[string]taken {
	took := map[string]taken{}
	if b.Last == "" {
		return took
	}
	data, err := os.ReadFile(filepath.Join(b.Last, lastFile))
	var digests map[string]string
	if err != nil || json.Unmarshal(data, &digests) != nil {
		return took
	}
	for _, t := range b.Programs {
		to := filepath.Join(b.Out, t.File())
		if digests[t.File()] == "" || os.Link(filepath.Join(b.Last, t.File()), to) != nil {
			continue
		}
		info, err := os.Lstat(to)
		if err == nil && isProgramFor(to, t.GOOS) {
			took[t.File()] = taken{info, digests[t.File()]}
		} else if os.Remove(to) != nil { // go build refuses to write over what is no program
			return took
		}
	}
	return took
}

// damaged says whether a program that go build left as it was is not what was
// kept. The go command looks at nothing but the build ID in it.
func (b *Build) damaged(took map[string]taken, bins []Binary) bool {
	for _, bin := range bins {
		t, ok := took[bin.File]
		if !ok || t.sha256 == bin.SHA256 {
			continue
		}
		// What is linked anew is another file: the old one still lies in b.Last.
		if info, err := os.Lstat(filepath.Join(b.Out, bin.File)); err != nil || os.SameFile(info, t.info) {
			return true
		}
	}
	return false
}

// dropLast forgets the last compile and empties the output folder.
func (b *Build) dropLast() error {
	for _, dir := range []string{b.Last, b.Out} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing the programs of the last compile: %w", err)
		}
	}
	if err := os.Mkdir(b.Out, 0o755); err != nil {
		return fmt.Errorf("making a folder for the build: %w", err)
	}
	return nil
}

// keepLast leaves the programs to the next compile. That it fails costs time
// only, and what two processes leave at once is found to be damaged at worst.
func (b *Build) keepLast(bins []Binary) {
	if b.Last == "" || os.MkdirAll(b.Last, 0o755) != nil {
		return
	}
	digests := map[string]string{}
	for _, bin := range bins {
		from, to := filepath.Join(b.Out, bin.File), filepath.Join(b.Last, bin.File)
		if same(from, to) {
			digests[bin.File] = bin.SHA256
			continue
		}
		if err := os.Remove(to); err != nil && !os.IsNotExist(err) {
			continue
		}
		if os.Link(from, to) == nil {
			digests[bin.File] = bin.SHA256
		}
	}
	if data, err := json.Marshal(digests); err == nil {
		_ = os.WriteFile(filepath.Join(b.Last, lastFile), data, 0o644)
	}
}

// isProgramFor says whether a file begins like a program for a system.
func isProgramFor(path, goos string) bool {
	head, err := ReadSome(path, 1024)
	kind := Identify(head)
	return err == nil && (goos == Windows && kind == WindowsProgram || goos == Linux && hasAnyPrefix(kind, "a Linux program"))
}

// same says whether two names are of one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
