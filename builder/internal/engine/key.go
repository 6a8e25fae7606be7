package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/wbox-dev/wbox/builder/stage"
)

// keySchema is raised when keys are made in another way: every result of
// before is then a miss.
const keySchema = 1

// keyDoc is what a key is the hash of. It is stored beside the result.
type keyDoc struct {
	Schema      int               `json:"schema"`
	Stage       string            `json:"stage"`
	Fingerprint stage.Fingerprint `json:"fingerprint"`
	Inputs      map[string]string `json:"inputs"` // name -> "sha256:…" or "key:…"
}

// makeKey returns the key and the JSON that it is the hash of. The hash is
// over compact JSON with sorted keys, the returned form is indented for people.
func makeKey(d keyDoc) (key string, doc []byte, err error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return "", nil, fmt.Errorf("making the key: %w", err)
	}
	// Through an untyped value: the order of struct fields is then no part of it.
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return "", nil, fmt.Errorf("making the key: %w", err)
	}
	if key, err = hashKey(v); err != nil {
		return "", nil, err
	}
	doc, err = json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", nil, fmt.Errorf("making the key: %w", err)
	}
	return key, append(doc, '\n'), nil
}

// hashKey is the hash of a key's untyped JSON.
func hashKey(v any) (string, error) {
	canonical, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("making the key: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
