package hypervisor

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	good := Config{Name: "ws2022-1", Dir: dir, CPUs: 1, MemoryMiB: 512, Disk: filepath.Join(dir, "disk.qcow2")}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for word, spoil := range map[string]func(*Config){
		"name":        func(c *Config) { c.Name = "a,b" },
		"folder":      func(c *Config) { c.Dir = "relative" },
		"processors":  func(c *Config) { c.CPUs = 0 },
		"memory":      func(c *Config) { c.MemoryMiB = 511 },
		"firmware":    func(c *Config) { c.Firmware = "coreboot" },
		"accelerator": func(c *Config) { c.Accelerator = "warp" },
		"disk":        func(c *Config) { c.Disk = "" },
		"medium":      func(c *Config) { c.Media = []string{"cd.iso"} },
		"boot from":   func(c *Config) { c.BootMedia = true },
		"serial":      func(c *Config) { c.SerialLog = "serial.log" },
		"port 65536":  func(c *Config) { c.Forwards = []Forward{{"a", 65536}} },
		"of its own":  func(c *Config) { c.Forwards = []Forward{{"a", 1}, {"a", 2}} },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("want an error about %q, got %v", word, err)
		}
	}
	if err := (Config{}).Validate(); strings.Count(err.Error(), "\n") < 4 {
		t.Errorf("want all errors at once, got %v", err)
	}
}
