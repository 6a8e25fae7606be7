package gosource

import (
	"fmt"
	"os"
	"strings"
)

// freeMemory returns the bytes that a program could take without swapping.
func freeMemory() (int64, bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	return memAvailable(string(data))
}

// memAvailable reads the MemAvailable line of /proc/meminfo.
func memAvailable(meminfo string) (int64, bool) {
	for line := range strings.Lines(meminfo) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}
