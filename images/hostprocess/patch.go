package hostprocess

import "strings"

// Workload is where a manifest names an image.
type Workload struct {
	Namespace, Name string
	Init            []string // names of init containers
	Containers      []string
}

// KubeProxyWorkload is the DaemonSet of hostprocess/calico/kube-proxy/kube-proxy.yml
// in kubernetes-sigs/sig-windows-tools.
func KubeProxyWorkload() Workload {
	return Workload{Namespace: "kube-system", Name: "kube-proxy-windows", Containers: []string{"kube-proxy"}}
}

// AntreaWorkload is the DaemonSet of antrea-windows.yml. Calico has none here: its
// operator makes the workloads, and asks for the names that Calico gives.
func AntreaWorkload() Workload {
	return Workload{Namespace: "kube-system", Name: "antrea-agent-windows", Init: []string{"install-cni"}, Containers: []string{"antrea-agent"}}
}

// Patch returns a strategic merge patch, for kustomize or kubectl patch
// --patch-file, that makes a DaemonSet run the image, and makes nodes use the
// one they have: nobody publishes it.
func (w Workload) Patch(image string) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: " + w.Name + "\n  namespace: " + w.Namespace +
		"\nspec:\n  template:\n    spec:\n")
	for _, part := range []struct {
		key   string
		names []string
	}{{"initContainers", w.Init}, {"containers", w.Containers}} {
		if len(part.names) > 0 {
			b.WriteString("      " + part.key + ":\n")
		}
		for _, n := range part.names {
			b.WriteString("      - name: " + n + "\n        image: " + image + "\n        imagePullPolicy: IfNotPresent\n")
		}
	}
	return []byte(b.String())
}
