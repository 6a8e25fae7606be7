package gosource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// At writes the files of a ref's commit into a folder in scratch, which is
// dropped afterwards, and calls compile with it.
func (m *Mirror) At(ctx context.Context, value string, ref Ref, scratch string, compile func(root string) (Bits, error)) (Bits, error) {
	if _, err := m.FindHash(ctx, ref.Commit); err != nil {
		if errors.Is(err, ErrNoRef) {
			return Bits{}, m.set.Problem(value, "no longer has the commit "+ref.Commit, "resolve it anew")
		}
		return Bits{}, err
	}
	src := filepath.Join(scratch, "src")
	m.sink.Emit(report.Event{Kind: report.StageProgress, Message: "fetching the files of " + ref.Version})
	defer os.RemoveAll(src)
	if err := m.CheckOut(ctx, ref.Commit, src); err != nil {
		return Bits{}, err
	}
	return compile(src)
}

// From says where programs of a ref come from, for people.
func (m *Mirror) From(ref Ref) string {
	return "compiled from " + WithoutPassword(m.Remote) + " at " + ref.Commit
}

// Unknown explains that the remote has no such ref, and names some that are
// near: value is what the user wrote, and nearest picks from tags.
func (m *Mirror) Unknown(ctx context.Context, value, ref string, nearest func(tags []string, ref string) []string) error {
	p := &fault.Problem{Class: fault.Input, Field: m.set.Field, Value: value, Why: WithoutPassword(m.Remote) + " has no ref or commit " + ref, Fix: "check its spelling"}
	out, err := m.git.Run(ctx, "ls-remote", "--heads", "--tags", "--refs", m.name)
	if err != nil {
		return p
	}
	var tags, branches []string
	for _, f := range strings.Fields(string(out)) {
		if tag, ok := strings.CutPrefix(f, "refs/tags/"); ok {
			tags = append(tags, tag)
		} else if branch, ok := strings.CutPrefix(f, "refs/heads/"); ok {
			branches = append(branches, branch)
		}
	}
	slices.Sort(branches)
	switch near := nearest(tags, ref); {
	case len(near) > 0:
		p.Fix = "the nearest tags: " + strings.Join(near, ", ")
	case len(branches) > 0:
		p.Fix = "its branches: " + strings.Join(branches[:min(8, len(branches))], ", ")
		if len(branches) > 8 {
			p.Fix += fmt.Sprintf(" and %d more", len(branches)-8)
		}
	}
	return p
}

// SplitRemote splits "REPOSITORY@REF"; without a ref it is HEAD. The user of
// "git@host:path" is no ref, and neither is anything in a URL that has no path
// yet.
func SplitRemote(text string) (remote, ref string) {
	if i := strings.LastIndex(text, "@"); i > 0 && !strings.Contains(text[i+1:], ":") && !regexp.MustCompile(`://[^/]*$`).MatchString(text[:i]) {
		return text[:i], text[i+1:]
	}
	return text, "HEAD"
}

// CheckRemote says why a remote or a ref can't be meant, or "".
func CheckRemote(remote, ref string) string {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case remote == "" || strings.HasPrefix(remote, "-") || strings.ContainsFunc(remote, isControl) || strings.Contains(remote, "::"):
		return "names no git repository"
	case !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/+=#-]*$`).MatchString(ref) || strings.Contains(ref, "..") || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".lock"):
		return fmt.Sprintf("names no git ref (%q)", ref)
	}
	return ""
}
