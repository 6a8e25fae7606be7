package capacity

import (
	"os"
	"path/filepath"
	"testing"
)

func TestContainerLimitCounts(t *testing.T) {
	const mib = int64(1) << 20
	files := map[string]string{
		"proc/meminfo":                               "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n",
		"proc/self/cgroup":                           "12:cpu:/old\n0::/box/inner\n",
		"sys/fs/cgroup/box/memory.max":               "1073741824\n",
		"sys/fs/cgroup/box/memory.current":           "838860800\n",
		"sys/fs/cgroup/box/memory.stat":              "anon 1\ninactive_file 104857600\n",
		"sys/fs/cgroup/box/inner/memory.max":         "max\n",
		"sys/fs/cgroup/box/inner/memory.current":     "5\n",
		"sys/fs/cgroup/elsewhere/box/ignored/memory": "",
	}
	root := t.TempDir()
	for name, content := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := ram(root)
	if err != nil || m != (Memory{Total: 1024 * mib, Available: (1024 - 800 + 100) * mib}) {
		t.Errorf("%+v %v", m, err)
	}
	if err := os.Remove(filepath.Join(root, "proc/self/cgroup")); err != nil {
		t.Fatal(err)
	}
	if m, err := ram(root); err != nil || m.Total != 8192*mib || m.Available != 4096*mib {
		t.Errorf("without a group: %+v %v", m, err)
	}
}
