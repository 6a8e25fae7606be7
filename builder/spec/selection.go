package spec

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/kube"
)

// folder stands in a selection for a path: what lies there is pinned by digest,
// and where it lies differs between machines.
const folder = "folder"

// archive stands for an archive of images in the same way.
const archive = "archive"

// Public takes user names, passwords and queries, which often are signatures,
// out of URLs: a lock is not for secrets. Everything else stays as it is.
func Public(text string) string {
	if strings.Contains(text, "://") {
		text, _, _ = strings.Cut(text, "?")
	}
	return regexp.MustCompile(`://[^/@\s]*@`).ReplaceAllString(text, "://")
}

// inFolder is what is said of any path.
func inFolder(string) string { return folder }

// Selection returns what decides which inputs a defaulted Spec needs and what
// is made of them, by key, for the lock. The medium's path, the box's name and
// revision and all that says how a build runs are not in it.
func (s *Spec) Selection() map[string]string {
	out := map[string]string{
		"cni": component.Rebase("--cni", Public(s.CNI), inFolder), "windows": s.Windows, "edition": s.Edition,
		"k8sBase": s.K8sBase, "k8sVersion": s.K8sVersion,
		"diskGiB": strconv.Itoa(s.DiskGiB), "providers": strings.Join(s.Providers, ","),
	}
	if out["k8s"] = Public(strings.TrimSpace(s.K8s)); kube.IsPath(s.K8s, ".") {
		out["k8s"] = folder
	}
	if s.Containerd != "" {
		out["containerd"] = component.Rebase("--containerd", Public(s.Containerd), inFolder)
	}
	var preload []string
	for _, word := range s.Preload {
		if strings.HasSuffix(word, ".tar") {
			word = archive
		}
		preload = append(preload, word)
	}
	out["preload"] = strings.Join(preload, ",")
	for k, v := range out {
		if v == "" {
			delete(out, k)
		}
	}
	return out
}
