package media

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/fetch"
)

// ReadTable reads a table of one's own from a JSON file: the media of a
// company's server, say. It has the form of the built-in one. field is the
// setting that named the file, for errors.
func ReadTable(path, field string) ([]Entry, error) {
	bad := func(why string, err error) ([]Entry, error) {
		return nil, &fault.Problem{Class: fault.Usage, Field: field, Value: path, Why: why, Err: err, Fix: "write a JSON list of objects with name, release, version, editions, sha256, size, path, page and licence"}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return bad("can't be read", err)
	}
	t, err := parseTable(b)
	if err != nil {
		return bad("is no table of media", err)
	}
	return t, nil
}

func parseTable(b []byte) ([]Entry, error) {
	var t []Entry
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	seen := map[string]bool{}
	for i, e := range t {
		switch {
		case e.Name == "" || seen[e.Name]:
			return nil, fmt.Errorf("entry %d has no name of its own", i+1)
		case fetch.Digest(e.SHA256) != e.Digest():
			return nil, fmt.Errorf("%s: %q is no SHA-256 of 64 hexadecimal digits in lower case", e.Name, e.SHA256)
		case e.Path != "" && e.Path[0] != '/':
			return nil, fmt.Errorf("%s: the path %q does not begin with /", e.Name, e.Path)
		case e.Size < 0:
			return nil, fmt.Errorf("%s: the size is negative", e.Name)
		}
		seen[e.Name] = true
	}
	return t, nil
}
