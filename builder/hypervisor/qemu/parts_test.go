package qemu

import (
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestPartsAreToldOneByOne(t *testing.T) {
	code := touch(t, filepath.Join(t.TempDir(), "code.fd"))
	d := New(Options{Program: filepath.Join(t.TempDir(), "no-qemu"), FirmwareCode: code, FirmwareVars: code})
	parts := d.Parts(t.Context())
	if len(parts) != 2 || fault.ClassOf(parts[0].Err) != fault.Host || parts[0].Found != "" {
		t.Fatalf("QEMU: %+v", parts)
	}
	if parts[1].Err != nil || parts[1].Found != code {
		t.Errorf("firmware: %+v", parts[1])
	}
}
