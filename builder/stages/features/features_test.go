package features

import (
	"slices"
	"testing"
)

func TestWhatACNINeeds(t *testing.T) {
	for cni, want := range map[string]struct{ features, dism, off []string }{
		"none":    {features: []string{"Containers"}},
		"flannel": {features: []string{"Containers"}},
		"calico":  {features: []string{"Containers", "RemoteAccess", "RSAT-RemoteAccess-PowerShell", "Routing"}},
		"antrea": {[]string{"Containers", "Hyper-V-PowerShell"}, []string{"Microsoft-Hyper-V"},
			[]string{"Microsoft-Hyper-V-Online"}},
	} {
		got := parameters(cni)
		if !slices.Equal(got.Features, want.features) || !slices.Equal(got.DISM, want.dism) || !slices.Equal(got.DisableDISM, want.off) {
			t.Errorf("%s: %+v", cni, got)
		}
		if got.DISM == nil || got.DisableDISM == nil {
			t.Errorf("%s: a list is null in JSON", cni)
		}
	}
}
