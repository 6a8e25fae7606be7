package builder

import (
	"testing"
	"time"
)

// TestExpectedIsWhatThePlanSays: what was measured here before, and nothing
// else, is expected of the stages that would run.
func TestExpectedIsWhatThePlanSays(t *testing.T) {
	b := newTestBuilder(t, t.TempDir(), plenty)
	r := standInBuild(t, "calico")
	expected, err := b.preflight(t.Context(), r)
	if err != nil || len(expected) != 0 {
		t.Fatalf("an empty store: %v, %v", expected, err)
	}
	warm(t, b, r, mib, 10*time.Second)
	if expected, err = b.preflight(t.Context(), r); err != nil || len(expected) != 0 {
		t.Fatalf("nothing runs: %v, %v", expected, err)
	}
	other := standInBuild(t, "antrea") // another CNI: features are the first layer that differs
	if expected, err = b.preflight(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if expected["features"] != 10*time.Second || expected["proof"] != 10*time.Second {
		t.Errorf("expected %v", expected)
	}
	for _, there := range []string{"windows", "kube"} {
		if d, ok := expected[there]; ok {
			t.Errorf("%s is in the store, but %v is expected of it", there, d)
		}
	}
	x, err := b.Explain(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if want := explainedStage(t, x, "features").Explain.Cost.Seconds; want != 10 {
		t.Errorf("the plan says %v s", want)
	}
}
