package report

import "fmt"

// Bytes writes a number of bytes as people do: "750 B", "1.5 GiB". Units are
// powers of 1024.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		f /= 1024
		if f < 9.95 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		if f < 1023.5 {
			return fmt.Sprintf("%.0f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", f/1024)
}
