package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
	"github.com/wbox-dev/wbox/builder/fault"
)

func TestParseCNI(t *testing.T) {
	dir := t.TempDir()
	for _, project := range []string{"antrea", "calico", "flannel", "containerd"} {
		if err := componenttest.Tree(filepath.Join(dir, project), project); err != nil {
			t.Fatal(err)
		}
	}
	for folder, file := range map[string]string{"a": "antrea-agent.exe", "f": "flanneld.exe", "n": "other.exe"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	const sha = "0123456789abcdef0123456789abcdef01234567"
	for _, tt := range []struct {
		text string
		want Request
		says string // of the refusal
	}{
		{text: "none", want: Request{Project: None, Form: Bare}},
		{text: " calico ", want: Request{Project: Calico, Form: Bare}},
		{text: "antrea", want: Request{Project: Antrea, Form: Bare}},
		{text: "flannel", want: Request{Project: Flannel, Form: Bare}},
		{text: "antrea@main", want: Request{Project: Antrea, Form: Git, Ref: "main"}},
		{text: "antrea@v2.7.0", want: Request{Project: Antrea, Form: Git, Ref: "v2.7.0"}},
		{text: "calico@release-v3.32", want: Request{Project: Calico, Form: Git, Ref: "release-v3.32"}},
		{text: "calico@feature/x", want: Request{Project: Calico, Form: Git, Ref: "feature/x"}},
		{text: "calico@pull/123", want: Request{Project: Calico, Form: Git, Ref: "pull/123"}},
		{text: "calico@" + sha, want: Request{Project: Calico, Form: Git, Ref: sha}},
		{text: "antrea@git:https://example.com/me/antrea.git@topic", want: Request{Project: Antrea, Form: Git, Remote: "https://example.com/me/antrea.git", Ref: "topic"}},
		{text: "antrea@git:git@example.com:me/antrea.git@topic", want: Request{Project: Antrea, Form: Git, Remote: "git@example.com:me/antrea.git", Ref: "topic"}},
		{text: "antrea@git:https://example.com/me/antrea.git", want: Request{Project: Antrea, Form: Git, Remote: "https://example.com/me/antrea.git", Ref: "HEAD"}},
		{text: "antrea@./antrea", want: Request{Project: Antrea, Form: Path, Path: "./antrea"}},
		{text: "antrea@image.tar", want: Request{Project: Antrea, Form: Path, Path: "image.tar"}},
		{text: "flannel@./f", want: Request{Project: Flannel, Form: Path, Path: "./f"}},
		{text: "./antrea", want: Request{Project: Antrea, Form: Path, Path: "./antrea"}},
		{text: "./calico", want: Request{Project: Calico, Form: Path, Path: "./calico"}},
		{text: "./flannel", want: Request{Project: Flannel, Form: Path, Path: "./flannel"}},
		{text: "./a", want: Request{Project: Antrea, Form: Path, Path: "./a"}},
		{text: "./f", want: Request{Project: Flannel, Form: Path, Path: "./f"}},

		{text: "", says: "is not known"},
		{text: "cilium", says: "use one of none, calico, antrea, flannel"},
		{text: "cilium@main", says: "use one of"},
		{text: "none@main", says: "no CNI"},
		{text: "antrea@", says: "no ref and no path"},
		{text: "antrea@-x", says: "no git ref"},
		{text: "antrea@a..b", says: "no git ref"},
		{text: "antrea@git:", says: "git:REPOSITORY@REF"},
		{text: "antrea@git:-x@y", says: "names no git repository"},
		{text: "antrea@https://example.com/antrea.git", says: "git:REPOSITORY@REF"},
		{text: "flannel@v0.28.0", says: "needs cgo"},
		{text: "flannel@git:https://example.com/f.git@x", says: "take its release"},
		{text: "./containerd", says: "does not say whose it is"},
		{text: "./n", says: "name the CNI: antrea@./n"},
		{text: "./nowhere", says: "does not exist"},
		{text: "antrea main", says: "is not known"},
	} {
		got, err := ParseCNI(tt.text)
		tt.want.Text = strings.TrimSpace(tt.text)
		switch {
		case tt.says == "" && (err != nil || got != tt.want):
			t.Errorf("%q: got %+v, %v, want %+v", tt.text, got, err, tt.want)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "--cni")):
			t.Errorf("%q: got %+v, %v, want a refusal that says %q", tt.text, got, err, tt.says)
		}
	}
}

func TestParseContainerd(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Request
		says string
	}{
		{text: "2.3.4", want: Request{Form: Module, Version: "v2.3.4"}},
		{text: "v2.4.0-rc.1", want: Request{Form: Module, Version: "v2.4.0-rc.1"}},
		{text: "main", want: Request{Form: Git, Ref: "main"}},
		{text: "release/2.3", want: Request{Form: Git, Ref: "release/2.3"}},
		{text: "pull/12345/merge", want: Request{Form: Git, Ref: "pull/12345/merge"}},
		{text: "301026e58", want: Request{Form: Git, Ref: "301026e58"}},
		{text: "git:https://example.com/c.git@v1.7.28", want: Request{Form: Git, Remote: "https://example.com/c.git", Ref: "v1.7.28"}},
		{text: "git:./containerd@topic", want: Request{Form: Git, Remote: "./containerd", Ref: "topic"}},
		{text: "bin", want: Request{Form: Path, Path: "bin"}},
		{text: "./2.3.4", want: Request{Form: Path, Path: "./2.3.4"}},
		{text: "/opt/c", want: Request{Form: Path, Path: "/opt/c"}},
		{text: "image.tar", want: Request{Form: Path, Path: "image.tar"}},

		{text: " ", says: "is empty"},
		{text: "2.3", says: "X.Y.Z"},
		{text: "1.7.28", says: "git:https://github.com/containerd/containerd.git@v1.7.28"},
		{text: "2.3.4+x", says: "X.Y.Z"},
		{text: "https://example.com/c.git", says: "git:REPOSITORY@REF"},
		{text: "git:", says: "names no git repository"},
	} {
		got, err := ParseContainerd(tt.text)
		tt.want.Text, tt.want.Project = strings.TrimSpace(tt.text), Containerd
		switch {
		case tt.says == "" && (err != nil || got != tt.want):
			t.Errorf("%q: got %+v, %v, want %+v", tt.text, got, err, tt.want)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "--containerd")):
			t.Errorf("%q: got %+v, %v, want a refusal that says %q", tt.text, got, err, tt.says)
		}
	}
}

// A password in a URL is used, and told nobody.
func TestParseKeepsPasswords(t *testing.T) {
	r, err := ParseCNI("antrea@git:https://me:secret@example.com/antrea.git@topic")
	if err != nil || r.Remote != "https://me:secret@example.com/antrea.git" || r.Text != "antrea@git:https://example.com/antrea.git@topic" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, text := range []string{"antrea@git:https://me:secret@example.com/antrea.git@..", "antrea@https://me:secret@example.com/a", "cilium@git:https://me:secret@example.com/c@x", "flannel@git:https://me:secret@example.com/c@x"} {
		if _, err := ParseCNI(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestRebase(t *testing.T) {
	change := func(p string) string { return "<" + p + ">" }
	for _, tt := range []struct{ flag, text, want string }{
		{cniFlag, "antrea@./x", "antrea@<./x>"},
		{cniFlag, "./x", "<./x>"},
		{cniFlag, "antrea@main", "antrea@main"},
		{cniFlag, "calico", "calico"},
		{cniFlag, "nonsense", "nonsense"},
		{containerdFlag, "bin", "<bin>"},
		{containerdFlag, "2.3.4", "2.3.4"},
		{containerdFlag, "git:x@y", "git:x@y"},
		{containerdFlag, "", ""},
	} {
		if got := Rebase(tt.flag, tt.text, change); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.flag, tt.text, got, tt.want)
		}
	}
}

// Whatever is written after the flags, it is one value or a Problem, and a git
// command gets no option out of it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"antrea@main", "calico@git:x@y", "flannel@./a", "./b", "2.3.4", "git:-o@x", "none@", "@", "antrea@git:https://u:p@h@r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (Request, error){ParseCNI, ParseContainerd} {
			r, err := parse(text)
			switch {
			case err != nil && fault.ClassOf(err) != fault.Usage && fault.ClassOf(err) != fault.Input:
				t.Errorf("%q: class %d of %v", text, fault.ClassOf(err), err)
			case err == nil && (r.Project == "" || r.Form == ""):
				t.Errorf("%q: got %+v", text, r)
			case strings.HasPrefix(r.Ref, "-") || strings.HasPrefix(r.Remote, "-"):
				t.Errorf("%q: an option: %+v", text, r)
			}
		}
	})
}
