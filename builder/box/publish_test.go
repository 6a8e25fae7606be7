package box

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/golden"
	"github.com/wbox-dev/wbox/builder/lock"
)

func entry(box, version string) Entry {
	return Entry{Name: "local/wbox-ws2022-none", Version: version, Box: box, Kubernetes: "v1.37.2", Windows: "Windows Server 2022", Licence: "evaluation"}
}

// someFile writes a file that takes a box's place: Publish doesn't look inside.
func someFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.box")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPublish(t *testing.T) {
	dir := t.TempDir()
	first := someFile(t, "first")
	path, err := Publish(t.Context(), dir, entry(first, "1.37.2.0"))
	if err != nil {
		t.Fatal(err)
	}
	if path != filepath.Join(dir, CatalogFile) {
		t.Errorf("catalog at %s", path)
	}
	if _, err := os.Stat(first); err != nil {
		t.Errorf("the box was moved without being asked: %v", err)
	}
	second := someFile(t, "second")
	e := entry(second, "1.38.0-alpha.1.23.0")
	e.Kubernetes, e.StandIn, e.Move = "v1.38.0-alpha.1.23+fb9b3e5", true, true
	if _, err := Publish(t.Context(), dir, e); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(second); !os.IsNotExist(err) {
		t.Errorf("the box was not moved: %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, *update, "catalog.json", []byte(strings.ReplaceAll(string(data), fileURL(dir), "file:///OUT")))
	for version, want := range map[string]string{"1.37.2.0": mustSum(t, first), "1.37.2.1": ""} {
		if got, err := Published(t.Context(), dir, e.Name, version); err != nil || got != want {
			t.Errorf("%s: published as %q, %v; want %q", version, got, err, want)
		}
	}
	if foreign, err := Foreign(dir); err != nil || len(foreign) != 0 {
		t.Errorf("foreign: %q, %v", foreign, err)
	}
}

func TestABoxThatIsNotWhatWasMade(t *testing.T) {
	dir := t.TempDir()
	e := entry(someFile(t, "damaged"), "1.37.2.0")
	e.SHA256 = mustSum(t, someFile(t, "sound"))
	if _, err := Publish(t.Context(), dir, e); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("it was published: %v, %v", left, err)
	}
}

func TestPublishedVersionsNeverChange(t *testing.T) {
	dir := t.TempDir()
	e := entry(someFile(t, "first"), "1.37.2.0")
	path, err := Publish(t.Context(), dir, e)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), dir, e); err != nil {
		t.Errorf("the same box again: %v", err)
	}
	// A box that was lost is put back.
	box := filepath.Join(dir, FileName(e.Name, e.Version))
	if err := os.Remove(box); err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), dir, e); err != nil {
		t.Errorf("the same box after a loss: %v", err)
	}
	_, err = Publish(t.Context(), dir, entry(someFile(t, "other"), "1.37.2.0"))
	if fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "--revision") {
		t.Errorf("another box: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the catalog has changed: %v", err)
	}
	if data, err := os.ReadFile(box); err != nil || string(data) != "first" {
		t.Errorf("the box has changed: %q, %v", data, err)
	}
}

// TestPublishAfterAKill has a box under its final name that no catalog names.
func TestPublishAfterAKill(t *testing.T) {
	dir := t.TempDir()
	e := entry(someFile(t, "new"), "1.37.2.0")
	box := filepath.Join(dir, FileName(e.Name, e.Version))
	if err := os.WriteFile(box, []byte("left behind"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), dir, e); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(box); err != nil || string(data) != "new" {
		t.Errorf("the box is %q, %v", data, err)
	}
}

func TestPublishKeepsWhatOthersAdded(t *testing.T) {
	dir := t.TempDir()
	const old = `{"name":"local/wbox-ws2022-none","extra":{"a":1.50},"versions":[
		{"version":"1.36.0.0","note":"n","providers":[{"name":"libvirt","url":"file:///old.box","more":[1]},{"name":"hyperv","url":"u"}]},
		{"version":"1.35.0.0"}]}`
	path := filepath.Join(dir, CatalogFile)
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), dir, entry(someFile(t, "x"), "1.37.2.0")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Extra    json.RawMessage
		Versions []map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Versions) != 3 || string(got.Versions[0]["note"]) != `"n"` || !strings.Contains(string(got.Extra), "1.50") ||
		!strings.Contains(string(got.Versions[0]["providers"]), "hyperv") || got.Versions[1]["providers"] != nil {
		t.Errorf("the catalog is now %s", data)
	}
}

func TestPublishRefusesForeignCatalogs(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON":          "hello",
		"an array":          "[]",
		"null":              "null",
		"no name":           `{"versions":[]}`,
		"another box":       `{"name":"other/box","versions":[]}`,
		"two documents":     `{"name":"local/wbox-ws2022-none"}{}`,
		"versions no list":  `{"name":"local/wbox-ws2022-none","versions":{}}`,
		"version no text":   `{"name":"local/wbox-ws2022-none","versions":[{"version":1}]}`,
		"version twice":     `{"name":"local/wbox-ws2022-none","versions":[{"version":"1"},{"version":"1"}]}`,
		"provider nameless": `{"name":"local/wbox-ws2022-none","versions":[{"version":"1","providers":[{}]}]}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, CatalogFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Publish(t.Context(), dir, entry(someFile(t, "x"), "1.37.2.0")); fault.ClassOf(err) != fault.Usage {
			t.Errorf("%s: got %v", name, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: left behind %v", name, entries)
		}
		if data, _ := os.ReadFile(path); string(data) != content {
			t.Errorf("%s: the file has changed", name)
		}
	}
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"wbox-ws2022-none-1.37.2.0-libvirt.box", "wbox-ws2022-none-1.38.0-alpha.1.0.0-manifest.json", ".wbox-tmp-123", ".wbox.lock",
		"notes.txt", "x.box", "catalog.json", "1.37.2.0-libvirt.box"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "a-1.2.3.0-libvirt.box"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Foreign(dir)
	if want := "1.37.2.0-libvirt.box a-1.2.3.0-libvirt.box catalog.json notes.txt x.box"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v", got, err)
	}
	data, err := lock.New(nil, nil, nil).Encode()
	if err != nil {
		t.Fatal(err)
	}
	withLock := t.TempDir()
	for _, content := range []string{string(data), "Dear wbox"} {
		if err := os.WriteFile(filepath.Join(withLock, lock.FileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Foreign(withLock); err != nil || (len(got) == 0) != (content == string(data)) {
			t.Errorf("a lock that says %.30q: %q, %v", content, got, err)
		}
	}
	if got, err := Foreign(filepath.Join(dir, "none")); err != nil || got != nil {
		t.Errorf("no folder: %q, %v", got, err)
	}
}

func TestFileURL(t *testing.T) {
	if got := fileURL("/a b/c#d?e%f"); got != "file:///a%20b/c%23d%3Fe%25f" {
		t.Errorf("got %s", got)
	}
}

func FuzzParseCatalog(f *testing.F) {
	data, err := os.ReadFile("testdata/catalog.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"name":"a/b","versions":[{"version":"1","providers":[{"name":"libvirt","checksum":""}]}]}`))
	f.Add([]byte(`{"name":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCatalog(data)
		if err != nil {
			return
		}
		out, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseCatalog(out)
		if err != nil || len(again.versions) != len(c.versions) || again.name() != c.name() {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
	})
}

func TestWhatACatalogSaysOfABox(t *testing.T) {
	e := entry("", "1.37.2.0")
	for _, c := range []struct {
		change func(*Entry)
		want   string
	}{
		{func(*Entry) {}, "Kubernetes v1.37.2 on Windows Server 2022, evaluation licence"},
		{func(e *Entry) { e.Clock = "grace ends 2026-12-11" }, "Kubernetes v1.37.2 on Windows Server 2022, evaluation licence (grace ends 2026-12-11)"},
		{func(e *Entry) { e.StandIn, e.Clock = true, "grace ends 2026-12-11" }, "Kubernetes v1.37.2 on a stand-in: a small Linux that simulates Windows, for tests only"},
	} {
		x := e
		c.change(&x)
		if got := x.describe(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
