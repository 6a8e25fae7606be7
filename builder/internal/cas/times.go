package cas

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Times returns, for each stage that has results here, how long making one
// took: the median. A stage without a result was not measured and is not in
// the map. Damaged results don't count; the error is for a store that can't be
// read.
func (s *Store) Times() (map[string]time.Duration, error) {
	dir := filepath.Join(s.root, "results")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	all := map[string][]time.Duration{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "result.json"))
		var r Result
		if err != nil || json.Unmarshal(b, &r) != nil || r.Stage == "" || r.Elapsed <= 0 {
			continue
		}
		all[r.Stage] = append(all[r.Stage], r.Elapsed)
	}
	out := map[string]time.Duration{}
	for stage, times := range all {
		out[stage] = median(times)
	}
	return out, nil
}

// median returns the middle of at least one value, of an even number the mean
// of the two in the middle.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	n := len(times)
	return (times[(n-1)/2] + times[n/2]) / 2
}
