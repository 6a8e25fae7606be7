package gosource

import "testing"

func TestMemAvailable(t *testing.T) {
	if n, ok := memAvailable("MemTotal: 10 kB\nMemFree:  5 kB\nMemAvailable:    2048 kB\n"); n != 2<<20 || !ok {
		t.Errorf("got %d, %v", n, ok)
	}
	if _, ok := memAvailable("MemTotal: 10 kB\n"); ok {
		t.Error("found what isn't there")
	}
	if n, ok := freeMemory(); !ok || n < 1<<20 {
		t.Errorf("this machine has %d, %v", n, ok)
	}
}
