package spec

import (
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestDefaults(t *testing.T) {
	s := &Spec{K8s: "v1.37.2", Providers: []string{"auto"}}
	s.Default()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Windows != "2022" || s.Edition != "core" || s.CNI != "none" || s.Output != "out" || len(s.Providers) != 1 || s.Providers[0] != "libvirt" {
		t.Errorf("%+v", s)
	}
}

func TestBoxName(t *testing.T) {
	for _, c := range []struct {
		name    string
		standIn bool
		want    string
	}{
		{"", false, "local/wbox-ws2022-calico"},
		{"", true, "local/wbox-ws2022-calico-stand-in"},
		{"me/node", false, "me/node"},
		{"me/node", true, "me/node-stand-in"},
		{"me/node-stand-in", true, "me/node-stand-in"},
	} {
		s := &Spec{Name: c.name, CNI: "calico"}
		s.Default()
		if got := s.BoxName(c.standIn); got != c.want {
			t.Errorf("%q, stand-in %v: %s, want %s", c.name, c.standIn, got, c.want)
		}
	}
}

func TestValidateNamesFieldValueAndFix(t *testing.T) {
	for field, change := range map[string]func(*Spec){
		"--k8s":          func(s *Spec) { s.K8s = "" },
		"--cni":          func(s *Spec) { s.CNI = "weave" },
		"--windows":      func(s *Spec) { s.Windows = "2012" },
		"--edition":      func(s *Spec) { s.Edition = "nano" },
		"--provider":     func(s *Spec) { s.Providers = []string{"libvirt", "qemu"} },
		"--name":         func(s *Spec) { s.Name = "../evil/x" },
		"--revision":     func(s *Spec) { s.Revision = -1 },
		"--cpus":         func(s *Spec) { s.CPUs = 65 },
		"--disk":         func(s *Spec) { s.DiskGiB = 31 },
		"--activate":     func(s *Spec) { s.Activate = "perhaps" },
		"--licence-days": func(s *Spec) { s.LicenceDays = 151 },
		"--memory":       func(s *Spec) { s.Memory = "1 elephant" },
	} {
		s := &Spec{K8s: "v1.37.2"}
		s.Default()
		change(s)
		all := fault.All(s.Validate())
		if len(all) != 1 {
			t.Errorf("%s: %d problems", field, len(all))
			continue
		}
		p := all[0]
		if p.Field != field || p.Fix == "" || p.Class != fault.Usage {
			t.Errorf("%s: %+v", field, p)
		}
	}
}

func TestAllProvidersOfTheContractAreKnown(t *testing.T) {
	for _, p := range strings.Split("libvirt|qemu|virtualbox|vmware|hyperv|ova|raw|qcow2|vhdx|vmdk|auto", "|") {
		if why, _ := refuseProvider(p); why == "is not known" {
			t.Errorf("provider %s is not known", p)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int{"4GiB": 4096, "4G": 4096, "4 GB": 4096, "2048": 2048, "2048MiB": 2048, "1GiB": 1024, " 3G ": 3072} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "512", "-4G", "4.5G", "4T", "99999999G", "2GiBs", "G"} {
		if got, err := ParseMemory(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

func FuzzParseMemory(f *testing.F) {
	for _, s := range []string{"4GiB", "1024", "9999999G", "٤G", "4 g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseMemory(text)
		if err == nil && (n < 1024 || n > 1<<20) {
			t.Errorf("%q: %d MiB is out of range and no error", text, n)
		}
	})
}
