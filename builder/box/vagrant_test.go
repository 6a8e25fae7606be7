package box

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVagrantAdds has the real Vagrant judge boxes and catalogs. The provider
// need not be installed for adding a box.
func TestVagrantAdds(t *testing.T) {
	if testing.Short() {
		t.Skip("runs Vagrant")
	}
	program, err := exec.LookPath("vagrant")
	if err != nil {
		t.Skip("needs vagrant")
	}
	home := t.TempDir()
	vagrant := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "VAGRANT_HOME="+home, "VAGRANT_CHECKPOINT_DISABLE=1", "VAGRANT_NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	dir := filepath.Join(t.TempDir(), "out put, #1") // what a URL must escape
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.37.2.0", "1.38.0-alpha.1.23.0", "1.37.2.0.5", "1.37.2.1"} {
		if _, err := Publish(t.Context(), dir, entry(writeBox(t), version)); err != nil {
			t.Fatal(err)
		}
	}
	catalogPath := filepath.Join(dir, CatalogFile)
	if out, err := vagrant("box", "add", catalogPath, "--provider", "libvirt", "--box-version", "~> 1.37.0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := vagrant("box", "list", "-i")
	if err != nil || !strings.Contains(out, "local/wbox-ws2022-none (libvirt, 1.37.2.1)") || !strings.Contains(out, "kubernetes: v1.37.2") {
		t.Errorf("box list: %v\n%s", err, out)
	}
	inside, err := filepath.Glob(filepath.Join(home, "boxes", "local-VAGRANTSLASH-wbox-ws2022-none", "1.37.2.1", "libvirt", "box.img"))
	if err != nil || len(inside) != 1 || mustSum(t, inside[0]) != mustSum(t, goodBox(t).Disk) {
		t.Errorf("the disk inside: %q, %v", inside, err)
	}
	// The catalog's checksum is what protects the box: damage is refused.
	data, err := os.ReadFile(catalogPath)
	if err != nil {
		t.Fatal(err)
	}
	sum := mustSum(t, filepath.Join(dir, FileName("local/wbox-ws2022-none", "1.37.2.0")))
	wrong := strings.ReplaceAll(string(data), sum, strings.Repeat("0", 64))
	if wrong == string(data) {
		t.Fatal("the catalog does not hold the box's checksum")
	}
	if err := os.WriteFile(catalogPath, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = vagrant("box", "add", catalogPath, "--provider", "libvirt", "--box-version", "1.37.2.0")
	if err == nil || !strings.Contains(out, "checksum") {
		t.Errorf("a wrong checksum: %v\n%s", err, out)
	}
}
