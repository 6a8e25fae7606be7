// Package quirks has every difference between Kubernetes minors, Windows
// builds and runtime versions as a named predicate with the version beside it;
// nothing else compares versions. An unknown, newer version means "as the
// latest known". It is a leaf: it imports nothing of ours.
package quirks

import "fmt"

// Minor is the y of Kubernetes 1.y.
type Minor int

// PodInfraContainerImage says whether kubelet takes --pod-infra-container-image.
// It refuses to start with it since 1.35 (kubernetes/kubernetes#133779).
func (m Minor) PodInfraContainerImage() bool { return m < 35 }

// CRISocketFlag says whether kubeadm join needs --cri-socket on Windows; since
// 1.25 it finds containerd's pipe itself.
func (m Minor) CRISocketFlag() bool { return m < 25 }

// DSRFeatureGates are what kube-proxy for Windows needs switched on for direct
// server return and overlay networks: both are on by default since 1.33, and
// their names are unknown some time after they became final in 1.34 (KEP-5100).
func (m Minor) DSRFeatureGates() []string {
	if m < 33 {
		return []string{"WinDSR=true", "WinOverlay=true"}
	}
	return nil
}

// PauseImage is the sandbox image for a Windows build. Only 3.10.2 and later
// have a layer for build 26100, and a pod's sandbox fails without one
// (kubernetes/kubernetes#136960).
func PauseImage(windowsBuild int) string {
	if windowsBuild >= 26100 {
		return "registry.k8s.io/pause:3.10.2"
	}
	return "registry.k8s.io/pause:3.10.1"
}

// ContainerdConfig is the version of config.toml for a version of containerd such
// as "v1.7.28" or "v2.3.4-2-g0123abc": 3 is read by all from 2.0 on, but bin_dirs,
// which it then has, is known since 2.1 only; those before take version 2. An
// unknown version is taken for the latest.
func ContainerdConfig(version string) int {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "v%d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 1) {
		return 2
	}
	return 3
}

// FeatureOverride is a value below
// HKLM\SYSTEM\CurrentControlSet\Policies\Microsoft\FeatureManagement\Overrides.
type FeatureOverride struct {
	ID    string `json:"id"`
	Value int    `json:"value"`
}

// FeatureOverrides are the switches that keep pod networking working on a
// Windows build, as kubernetes-sigs/image-builder sets them: on Server 2022
// against the VFP regression of April 2025, on 2025 to turn a network fix on.
func FeatureOverrides(windowsBuild int) []FeatureOverride {
	switch {
	case windowsBuild >= 26100:
		return []FeatureOverride{{ID: "520997518", Value: 1}}
	case windowsBuild >= 20348:
		return []FeatureOverride{{ID: "1114842764", Value: 0}}
	}
	return nil
}
