package quirks

import "testing"

func TestTheMinorAtWhichThingsChange(t *testing.T) {
	for _, c := range []struct {
		name      string
		has       func(Minor) bool
		last, not Minor
	}{
		{"--pod-infra-container-image", Minor.PodInfraContainerImage, 34, 35},
		{"--cri-socket", Minor.CRISocketFlag, 24, 25},
		{"gates of DSR", func(m Minor) bool { return len(m.DSRFeatureGates()) == 2 }, 32, 33},
	} {
		if !c.has(c.last) || c.has(c.not) {
			t.Errorf("%s: 1.%d %v, 1.%d %v", c.name, c.last, c.has(c.last), c.not, c.has(c.not))
		}
	}
}

func TestWindowsBuilds(t *testing.T) {
	for build, want := range map[int]struct {
		pause     string
		overrides int
	}{17763: {"3.10.1", 0}, 20348: {"3.10.1", 1}, 26100: {"3.10.2", 1}, 30000: {"3.10.2", 1}} {
		if got := PauseImage(build); got != "registry.k8s.io/pause:"+want.pause {
			t.Errorf("build %d: pause %s", build, got)
		}
		if got := FeatureOverrides(build); len(got) != want.overrides {
			t.Errorf("build %d: overrides %v", build, got)
		}
	}
}

func TestContainerdConfig(t *testing.T) {
	for version, want := range map[string]int{"v1.7.28": 2, "v2.0.14": 2, "v2.1.0": 3, "v2.3.4-2-g0123abcde": 3, "v2.4.0-beta+unknown": 3, "v3.0.0": 3, "301026e58": 3, "": 3} {
		if got := ContainerdConfig(version); got != want {
			t.Errorf("%q: version %d, want %d", version, got, want)
		}
	}
}
