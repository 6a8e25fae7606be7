package box

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/golden"
)

func TestVagrantfileGolden(t *testing.T) {
	got, err := LibvirtVagrantfile(Hardware{CPUs: 3, MemoryMiB: 6144})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, *update, "libvirt.Vagrantfile", got)
}

func TestVagrantfileRefuses(t *testing.T) {
	for _, h := range []Hardware{{CPUs: -1}, {MemoryMiB: 511}} {
		if _, err := LibvirtVagrantfile(h); fault.ClassOf(err) != fault.Usage {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// TestVagrantfileLoads has Vagrant itself evaluate the file.
func TestVagrantfileLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("runs Vagrant")
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("needs ruby")
	}
	if err := exec.CommandContext(t.Context(), ruby, "-e", `require "vagrant"`).Run(); err != nil {
		t.Skip("needs Vagrant as a Ruby library")
	}
	data, err := LibvirtVagrantfile(Hardware{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "Vagrantfile")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	type settings struct {
		Guest, Communicator, Winrm string
		BootTimeout                int `json:"boot_timeout"`
		Provisioners               []string
		Provider                   struct {
			CPUs, Memory  int
			Machine       string `json:"machine_type"`
			Loader, Nvram string
			Disk          string `json:"disk_bus"`
			NIC           string `json:"nic_model_type"`
		}
	}
	load := func(env ...string) settings {
		cmd := exec.CommandContext(t.Context(), ruby, "testdata/load.rb", path)
		cmd.Env = append(os.Environ(), append(env, "VAGRANT_HOME="+t.TempDir())...)
		out, err := cmd.Output()
		var s settings
		if err == nil {
			err = json.Unmarshal(out, &s)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return s
	}
	s := load()
	if s.Guest != "windows" || s.Communicator != "winrm" || s.Winrm != "vagrant/vagrant" || s.BootTimeout < 600 {
		t.Errorf("defaults: %+v", s)
	}
	if p := s.Provider; p.CPUs != 2 || p.Memory != 4096 || p.Machine != "q35" || p.Disk != "sata" || p.NIC != "e1000e" ||
		!strings.HasPrefix(p.Loader, "/usr/share/") {
		t.Errorf("defaults: %+v", p)
	}
	s = load("WBOX_VAGRANT_COMMUNICATOR=winssh", "WBOX_VAGRANT_LOADER=/opt/it's firmware.fd", "WBOX_VAGRANT_NVRAM=/var/a b.fd")
	if s.Communicator != "winssh" || s.Provider.Loader != "/opt/it's firmware.fd" || s.Provider.Nvram != "/var/a b.fd" {
		t.Errorf("from the environment: %+v", s)
	}
	if len(s.Provisioners) != 0 {
		t.Errorf("without a file for the network: %v", s.Provisioners)
	}
	s = load("WBOX_VAGRANT_NETWORK=" + path)
	if got := strings.Join(s.Provisioners, ", "); got != "wbox-network-file file, wbox-network shell" {
		t.Errorf("with a file for the network: %s", got)
	}
	s = load("WBOX_VAGRANT_LOADER=/usr/share/edk2/ovmf/OVMF_CODE.fd")
	if !strings.HasPrefix(s.Provider.Nvram, "/var/lib/libvirt/qemu/nvram/wbox-") {
		t.Errorf("firmware in two parts: %+v", s.Provider)
	}
}
