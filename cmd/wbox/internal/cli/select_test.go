package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/wbox-dev/wbox/builder/spec"
)

func TestEveryFieldOfABoxFileHasAFlag(t *testing.T) {
	build := (&app{}).buildCommand().Flags()
	known := map[string]bool{"file": true, "preset": true, "lock": true}
	for _, f := range spec.Fields() {
		name := strings.TrimPrefix(f.Flag, "--")
		known[name] = true
		if build.Lookup(name) == nil {
			t.Errorf("%s can be said in a box file, but wbox build has no flag %s", f.Key, f.Flag)
		}
	}
	chosen := pflag.NewFlagSet("", pflag.ContinueOnError)
	selectionFlags(chosen, &selection{})
	chosen.VisitAll(func(f *pflag.Flag) {
		if !known[f.Name] {
			t.Errorf("--%s chooses what is built, but a box file can't say it", f.Name)
		}
	})
}

func TestRefreshNamesTheSameSelection(t *testing.T) {
	cmd := (&app{}).buildCommand()
	for name, value := range map[string]string{"iso": "a b.iso", "cni": "calico", "provider": "libvirt,qemu", "cpus": "3", "frozen": "true"} {
		if err := cmd.Flags().Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := refresh(cmd), "wbox lock --cni calico --iso 'a b.iso' --provider libvirt,qemu"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
