package kube

import "github.com/wbox-dev/wbox/builder/internal/gosource"

// settings are what gosource has to know of a request.
func (o Options) settings() gosource.Settings {
	return gosource.Settings{Field: field, What: "Kubernetes", Describe: []string{"--tags", "--match=v*", "--abbrev=14"},
		CacheDir: o.CacheDir, Go: o.Go, Env: o.Env, RetryPause: o.RetryPause, Offline: o.Offline, Parallel: o.Parallel, Anew: o.anew}
}

// about returns settings for problems of another flag.
func about(set gosource.Settings, flag string) gosource.Settings {
	set.Field = flag
	return set
}
