package cli

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

var (
	agePattern  = regexp.MustCompile(`^([0-9]{1,6})(h|d|w)$`)
	sizePattern = regexp.MustCompile(`^([0-9]{1,12})(?:(B|KiB|MiB|GiB|TiB|K|M|G|T|KB|MB|GB|TB))?$`)
)

// parseAge reads "12h", "30d" or "2w".
func parseAge(text string) (time.Duration, error) {
	m := agePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no age", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	unit := map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[2]]
	if n == 0 || int64(n) > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return time.Duration(n) * unit, nil
}

// parseSize reads "20GiB", "500M" or a number of bytes. Units are powers of 1024.
func parseSize(text string) (int64, error) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no size", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, err
	}
	shift := 0
	if m[2] != "" {
		shift = map[byte]int{'B': 0, 'K': 10, 'M': 20, 'G': 30, 'T': 40}[m[2][0]]
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return n << shift, nil
}

// ago writes how long ago something was: "5m", "3h", "12d".
func ago(t, now time.Time) string {
	switch d := max(0, now.Sub(t)); {
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
