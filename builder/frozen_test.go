package builder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/builder/spec"
)

// TestAFrozenBranchStaysWhereItIsPinned moves a branch after it was pinned.
func TestAFrozenBranchStaysWhereItIsPinned(t *testing.T) {
	for _, tool := range []string{"git", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	dir := t.TempDir()
	repo, medium := filepath.Join(dir, "kubernetes"), filepath.Join(dir, "w.iso")
	commits, err := kubetest.Repo(t.Context(), repo, strings.TrimPrefix(runtime.Version(), "go"))
	if err != nil {
		t.Fatal(err)
	}
	if err := isotest.WriteFake(medium, isotest.Editions("2022"), nil); err != nil {
		t.Fatal(err)
	}
	b, err := builder.New(builder.Options{Store: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	pins := builder.Pins{Path: filepath.Join(dir, "wbox.lock")}
	resolve := func(frozen bool) *builder.Resolved {
		t.Helper()
		pins.Frozen = frozen
		r, err := b.Resolve(t.Context(), &spec.Spec{K8s: "git:" + repo + "@work", ISO: medium}, builder.ResolveOptions{
			Kube: kube.Options{CacheDir: filepath.Join(dir, "kube")}, PlanOnly: true, Pins: pins})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	branch := func(to string) {
		if out, err := exec.CommandContext(t.Context(), "git", "-C", repo, "branch", "--force", "work", to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	branch(commits["first"])
	first := resolve(false)
	if err := first.Lock.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	branch(commits["master"])
	if got := resolve(true); got.Ref.Commit != first.Ref.Commit || got.Ref.Version != first.Ref.Version || got.Lock.Stale() {
		t.Errorf("frozen: %+v", got.Ref)
	}
	if got := resolve(false); got.Ref.Commit != commits["master"] || !got.Lock.Stale() {
		t.Errorf("not frozen: %+v", got.Ref)
	}
}
