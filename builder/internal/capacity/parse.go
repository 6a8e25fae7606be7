package capacity

import (
	"errors"
	"strconv"
	"strings"
)

// parseMeminfo reads /proc/meminfo: lines of "MemAvailable:  13919 kB", where
// kB means KiB (proc_meminfo(5)).
func parseMeminfo(text string) (Memory, error) {
	total, ok := meminfo(text, "MemTotal")
	available, ok2 := meminfo(text, "MemAvailable")
	if !ok || !ok2 {
		return Memory{}, errors.New("reading /proc/meminfo: MemTotal or MemAvailable is missing")
	}
	return Memory{Available: available, Total: total}, nil
}

func meminfo(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		n, ok := parseNumber(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		if !ok || n > 1<<50 {
			return 0, false
		}
		return n << 10, true
	}
	return 0, false
}

// parseCgroup reads /proc/self/cgroup; the line of version 2 is "0::/path".
func parseCgroup(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return "/"
}

// parseStat reads one "name bytes" line of memory.stat, 0 where there is none.
func parseStat(text, name string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := parseNumber(rest)
			return n
		}
	}
	return 0
}

// parseNumber reads a count of bytes; "max" is none.
func parseNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n >= 0
}
