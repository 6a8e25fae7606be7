package layer

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/wbox-dev/wbox/builder/fault"
)

func created() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 5e8, time.UTC) }

// list returns a line for each entry of a layer.
func list(t *testing.T, l v1.Layer) []string {
	t.Helper()
	rc, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var out []string
	for r := tar.NewReader(rc); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(created().Truncate(time.Second)) {
			t.Errorf("%s: owner %d:%d %q, changed %v", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		line := fmt.Sprintf("%c %o %s %q", h.Typeflag, h.Mode, h.Name, data)
		for _, k := range []string{"SCHILY.xattr.security.capability", recordAttributes} {
			if v := h.PAXRecords[k]; v != "" {
				line += fmt.Sprintf(" %x", v)
			}
		}
		out = append(out, line)
	}
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLinux(t *testing.T) {
	onDisk := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(onDisk, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Linux(t.Context(), []File{
		{Name: "usr/local/bin/kube-apiserver", Path: onDisk, Mode: 0o755, Capabilities: NetBindService()},
		{Name: "go-runner", Data: []byte("runner"), Mode: 0o755},
		{Name: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}, Options{Created: created(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	same(t, list(t, l),
		`0 755 go-runner "runner"`,
		`5 1777 tmp/ ""`,
		`5 755 usr/ ""`,
		`5 755 usr/local/ ""`,
		`5 755 usr/local/bin/ ""`,
		`0 755 usr/local/bin/kube-apiserver "program" 0100000200040000000000000000000000000000`)
	if err := validate.Layer(l); err != nil {
		t.Error(err)
	}
}

func TestWindows(t *testing.T) {
	files := []File{{Name: "k/antrea/bin/antrea-agent.exe", Data: []byte("MZ")}}
	opts := Options{Created: created(), Dir: t.TempDir()}
	l, err := Windows(t.Context(), files, opts)
	if err != nil {
		t.Fatal(err)
	}
	const dir, file = "3136", "3332" // "16" and "32"
	want := []string{`5 40555 Files "" ` + dir, `5 40555 Hives "" ` + dir, `5 40555 Files/k "" ` + dir, `5 40555 Files/k/antrea "" ` + dir,
		`5 40555 Files/k/antrea/bin "" ` + dir, `0 100555 Files/k/antrea/bin/antrea-agent.exe "MZ" ` + file}
	same(t, list(t, l), want...)
	if err := validate.Layer(l); err != nil {
		t.Error(err)
	}
	base, err := WindowsBase(t.Context(), files, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, list(t, base), slices.Delete(want, 1, 2)...)
}

// Every entry of a Windows layer says who may do what; a descriptor that is
// damaged would be found by nobody before Windows unpacks the layer.
func TestWindowsSecurity(t *testing.T) {
	for _, f := range []File{{Name: "a"}, {Name: "a", Mode: fs.ModeDir}} {
		sd, err := base64.StdEncoding.DecodeString(windowsHeader(f, 0, created()).PAXRecords[recordSecurity])
		if err != nil || len(sd) < 20 || sd[0] != 1 || sd[3] != 0x80 {
			t.Fatalf("%x, %v", sd, err)
		}
		owner := sd[sd[4]:sd[8]]
		if hex.EncodeToString(owner) != "01020000000000052000000020020000" {
			t.Errorf("owner %x", owner)
		}
		acl := sd[sd[16]:]
		if size := int(acl[2]) | int(acl[3])<<8; size != len(acl) {
			t.Errorf("the list says %d bytes, has %d", size, len(acl))
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, files := range map[string][]File{
		"up":           {{Name: "../x"}},
		"rooted":       {{Name: "/x"}},
		"empty":        {{Name: ""}},
		"twice":        {{Name: "x"}, {Name: "x"}},
		"file as dir":  {{Name: "x"}, {Name: "x/y"}},
		"case":         {{Name: "k/X.exe"}, {Name: "K/x.exe"}},
		"device":       {{Name: "k/nul.txt"}},
		"port":         {{Name: "com1"}},
		"stream":       {{Name: "a:b"}},
		"backslash":    {{Name: `k\x.exe`}},
		"dot":          {{Name: "x."}},
		"missing":      {{Name: "x", Path: filepath.Join(dir, "none")}},
		"folder":       {{Name: "x", Path: dir}},
		"control char": {{Name: "a\x01"}},
	} {
		blobs := t.TempDir()
		_, err := Windows(t.Context(), files, Options{Created: created(), Dir: blobs})
		if fault.ClassOf(err) != fault.Input {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(blobs); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestAFileThatChangesAndACancelledContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, size := range map[string]int64{"grown": 3, "shrunk": 9} {
		blobs := t.TempDir()
		open := func() (io.ReadCloser, error) { return os.Open(path) }
		_, err := write(t.Context(), []entry{{windowsHeader(File{Name: "x"}, size, created()), open}}, Options{Dir: blobs})
		if left, _ := os.ReadDir(blobs); err == nil || len(left) > 0 {
			t.Errorf("%s: %v, left %v", what, err, left)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Linux(ctx, []File{{Name: "x", Path: path}}, Options{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A layer of a fixed input is pinned, so that a change of the bytes by an update
// of the compression is seen.
func TestPinned(t *testing.T) {
	l, err := Linux(t.Context(), []File{{Name: "x", Data: []byte(strings.Repeat("wbox ", 5000))}}, Options{Created: created(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	diff, _ := l.DiffID()
	digest, _ := l.Digest()
	rc, err := l.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, rc); err != nil || hex.EncodeToString(sum.Sum(nil)) != digest.Hex {
		t.Errorf("the blob is not %s: %v", digest, err)
	}
	const wantDiff, wantDigest = "ad2af667c8db44a71a7ea1eb3d6223cdf4e352c676388c56deac6faacd5bd177", "21bcc91349f10dce6597f29b081da17a57701a6e8fff68c60e4f4266b97ae531"
	if diff.Hex != wantDiff || digest.Hex != wantDigest {
		t.Errorf("diff %s\ndigest %s", diff.Hex, digest.Hex)
	}
}
