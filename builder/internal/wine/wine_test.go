package wine

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestFindAsTheVariableSays(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, self)
	if got, err := Find(); err != nil || got != self {
		t.Errorf("got %q, %v", got, err)
	}
	for _, value := range []string{"none", "/no/such/wine"} {
		t.Setenv(Variable, value)
		if got, err := Find(); err == nil || !strings.Contains(err.Error(), Variable) {
			t.Errorf("%s: got %q, %v", value, got, err)
		}
	}
}

// TestNothingOfWineOutlivesASetUpThatIsCutOff: wine's own programs are no
// children of the run.
func TestNothingOfWineOutlivesASetUpThatIsCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("starts wine")
	}
	if _, err := Find(); err != nil {
		t.Skip(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	dir := filepath.Join(t.TempDir(), "prefix")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // as soon as wine has begun
		for ctx.Err() == nil {
			if len(runsIn(t, dir)) > 1 {
				cancel()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	if _, err := Open(ctx, dir); err == nil {
		t.Fatal("the set-up was not cut off")
	}
	var left []string
	for range 50 { // the kernel may take a moment
		if left = runsIn(t, dir); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("still running after 5 s: %q", left)
}

// runsIn lists the programs whose prefix is dir.
func runsIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && strings.Contains(string(env), "WINEPREFIX="+dir+"\x00") {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}
