package cli

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for in, want := range map[string]time.Duration{"12h": 12 * time.Hour, "30d": 720 * time.Hour, "2w": 336 * time.Hour} {
		if got, err := parseAge(in); err != nil || got != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "30", "d", "-1d", "1.5d", "0d", "30 d", "5m", "999999w"} {
		if got, err := parseAge(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "512": 512, "20GiB": 20 << 30, "500M": 500 << 20, "1TB": 1 << 40, "7B": 7} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "GiB", "-1", "1.5GiB", "20 GiB", "1PiB", "999999999999T"} {
		if got, err := parseSize(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func FuzzUnits(f *testing.F) {
	f.Add("30d")
	f.Add("20GiB")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseAge(text); err == nil && d <= 0 {
			t.Errorf("age %v", d)
		}
		if n, err := parseSize(text); err == nil && n < 0 {
			t.Errorf("size %d", n)
		}
	})
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{-time.Hour: "0m", 5 * time.Minute: "5m", 47 * time.Hour: "47h", 50 * time.Hour: "2d"} {
		if got := ago(now.Add(-d), now); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}
