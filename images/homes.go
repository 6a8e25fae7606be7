package images

import "slices"

// place is a blob in a registry.
type place struct{ registry, digest string }

// homes remembers which repositories of a registry are known to have a blob:
// what several images share is uploaded once and then mounted.
type homes struct {
	known   map[place][]string
	uploads map[place]*upload
}

// upload is one that is under way; others that need the same blob wait for it.
type upload struct{ done chan struct{} }

// home returns a repository that has the blob: repo itself if it does.
func (h *homes) home(p place, repo string) string {
	all := h.known[p]
	if len(all) == 0 {
		return ""
	}
	if slices.Contains(all, repo) {
		return repo
	}
	return all[0]
}
