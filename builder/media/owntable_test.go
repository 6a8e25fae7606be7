package media

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestReadTable(t *testing.T) {
	digest := strings.Repeat("a", 64)
	read := func(text string) ([]Entry, error) {
		p := filepath.Join(t.TempDir(), "table.json")
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return ReadTable(p, "WBOX_ISO_TABLE")
	}
	got, err := read(`[{"name":"a","release":"2022","sha256":"` + digest + `","path":"/x.iso"}]`)
	if err != nil || len(got) != 1 || got[0].Digest() != "sha256:"+digest {
		t.Errorf("%+v %v", got, err)
	}
	for text, why := range map[string]string{
		"": "no table", "{}": "no table", `[{"nom":"a"}]`: `unknown field "nom"`, "[] []": "follows the list",
		`[{"name":"","sha256":"` + digest + `"}]`:                                         "entry 1 has no name",
		`[{"name":"a","sha256":"` + digest + `"},{"name":"a","sha256":"` + digest + `"}]`: "entry 2 has no name of its own",
		`[{"name":"a","sha256":"` + strings.ToUpper(digest) + `"}]`:                       "is no SHA-256",
		`[{"name":"a","sha256":"` + digest + `","path":"x.iso"}]`:                         "does not begin with /",
		`[{"name":"a","sha256":"` + digest + `","size":-1}]`:                              "size is negative",
	} {
		_, err := read(text)
		want(t, err, fault.Usage, "WBOX_ISO_TABLE", why)
	}
	_, err = ReadTable(filepath.Join(t.TempDir(), "missing"), "WBOX_ISO_TABLE")
	want(t, err, fault.Usage, "can't be read")
	if b, err := parseTable(tableJSON); err != nil || len(b) < 4 {
		t.Errorf("the built-in table: %v %v", b, err)
	}
}

func FuzzTable(f *testing.F) {
	f.Add(tableJSON)
	f.Add([]byte(`[{"name":"a"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := parseTable(b)
		if err != nil {
			return
		}
		for _, e := range table {
			if u, err := e.url("https://example.org/base/"); err == nil && !strings.HasPrefix(u, "https://example.org/base/") {
				t.Fatalf("%+v leads to %s", e, u)
			}
		}
	})
}
