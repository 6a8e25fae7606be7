package capacity

import (
	"os"
	"path/filepath"
)

// RAM measures the memory of this machine; a limit of the control group that
// this process runs in (a container's) counts as the machine's.
func RAM() (Memory, error) { return ram("/") }

func ram(root string) (Memory, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return Memory{}, err
	}
	m, err := parseMeminfo(string(b))
	if err != nil {
		return Memory{}, err
	}
	own, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return m, nil
	}
	return limit(m, filepath.Join(root, "sys/fs/cgroup"), parseCgroup(string(own))), nil
}

// limit applies the limits of a control group and of those above it (cgroup
// v2). Pages of files that were not used lately are given back when memory is
// wanted, so they don't count as used.
func limit(m Memory, mount, group string) Memory {
	for dir := filepath.Join(mount, group); ; dir = filepath.Dir(dir) {
		most, ok := readNumber(filepath.Join(dir, "memory.max"))
		used, ok2 := readNumber(filepath.Join(dir, "memory.current"))
		if ok && ok2 {
			stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
			if err == nil {
				used -= parseStat(string(stat), "inactive_file")
			}
			m.Total = min(m.Total, most)
			m.Available = min(m.Available, max(0, most-used))
		}
		if dir == mount || len(dir) < len(mount) {
			return m
		}
	}
}

func readNumber(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	return parseNumber(string(b))
}
