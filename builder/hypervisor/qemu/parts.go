package qemu

import (
	"context"

	"github.com/wbox-dev/wbox/builder/hypervisor"
)

var _ hypervisor.Inspector = (*Driver)(nil)

// Parts looks for QEMU and for its firmware.
func (d *Driver) Parts(ctx context.Context) []hypervisor.Part {
	q := hypervisor.Part{Name: "QEMU"}
	if q.Found, q.Err = d.version(ctx); q.Err != nil {
		q.Found = ""
	}
	f := hypervisor.Part{Name: "UEFI firmware"}
	fw, err := findFirmware(d.opts, "/")
	f.Found, f.Err = fw.code, err
	return []hypervisor.Part{q, f}
}
