package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/spec"
)

func TestTheCommittedSchemaIsCurrent(t *testing.T) {
	want, err := schema("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../schema.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("builder/spec/schema.json is not what its types say; run go generate ./builder/spec (%v)", err)
	}
	if spec.Schema() != string(want) {
		t.Error("the package embeds another schema")
	}
}

func TestSchemaKnowsEveryKey(t *testing.T) {
	data, err := schema("../..")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties           map[string]map[string]any `json:"properties"`
		AdditionalProperties bool                      `json:"additionalProperties"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Properties) != len(spec.Keys()) || s.AdditionalProperties {
		t.Errorf("%d properties, want %d", len(s.Properties), len(spec.Keys()))
	}
	if got := s.Properties["windows"]["enum"].([]any); len(got) != 6 || got[1] != 2019.0 { //nolint:forcetypeassert // a test
		t.Errorf("windows: %v", got)
	}
	if got := s.Properties["cpus"]["type"]; got != "integer" {
		t.Errorf("cpus: %v", got)
	}
}

func TestUndocumentedFieldsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"spec.go", "file.go"} {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.Replace(data, []byte("Optional: virtual processors of the machine. Default: 2."), []byte("virtual processors"), 1)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir, "schema.json"); err == nil || !strings.Contains(err.Error(), "cpus") {
		t.Errorf("got %v", err)
	}
}
