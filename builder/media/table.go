package media

import (
	_ "embed" // the table
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	goversion "github.com/hashicorp/go-version"
)

//go:embed table.json
var tableJSON []byte

// Host is where Microsoft keeps its evaluation media. The paths below it
// change every few years; the digests in the table don't.
const Host = "https://software-static.download.prss.microsoft.com"

// Entry is an installation medium that wbox knows. Microsoft publishes no
// checksums beside its media; those here are what the named source found.
type Entry struct {
	Name     string   `json:"name"`
	Release  string   `json:"release"`  // 2019, 2022 or 2025
	Version  string   `json:"version"`  // of Windows, such as 10.0.20348.587
	Editions []string `json:"editions"` // core and desktop, as --edition names them
	Language string   `json:"language"` // such as en-US
	SHA256   string   `json:"sha256"`   // 64 hexadecimal digits
	Size     int64    `json:"size"`     // bytes, 0 where unknown
	Path     string   `json:"path"`     // below Host; empty where none is known
	Page     string   `json:"page"`     // where people can download it
	Licence  string   `json:"licence"`  // in short
	Source   string   `json:"source"`   // where the entry's facts are from
}

// Digest is the entry's digest as the store writes it.
func (e Entry) Digest() string { return "sha256:" + e.SHA256 }

// Table returns the media that wbox knows, the preferred one of a release
// first.
func Table() ([]Entry, error) {
	var t []Entry
	if err := json.Unmarshal(tableJSON, &t); err != nil {
		return nil, fmt.Errorf("reading the table of media: %w", err)
	}
	return t, nil
}

// url is where the entry is downloaded from: below base, where that is given.
func (e Entry) url(base string) (string, error) {
	if e.Path == "" {
		return "", errors.New("no address of it is known")
	}
	if base == "" {
		base = Host
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("is no http or https URL")
	}
	return strings.TrimSuffix(base, "/") + e.Path, nil
}

// newer compares versions of Windows; what can't be read is the oldest.
func newer(a, b string) bool {
	va, errA := goversion.NewVersion(a)
	vb, errB := goversion.NewVersion(b)
	if errA != nil || errB != nil {
		return errA == nil && errB != nil
	}
	return va.GreaterThan(vb)
}

// Bytes writes a size as people read it: "5.0 GB".
func Bytes(n int64) string {
	switch {
	case n <= 0:
		return "size unknown"
	case n < 1_000_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
