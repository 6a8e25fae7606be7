package hypervisor

import "context"

// Part is a program or file on this host that a driver cannot do without.
type Part struct {
	Name  string // for people, such as "QEMU"
	Found string // its version, or where it lies; empty where it is missing
	Err   error  // why it can't be used, a *fault.Problem of class fault.Host
}

// Inspector is implemented by drivers that can tell what they need one by one;
// Probe stops at the first that is missing.
type Inspector interface {
	// Parts looks at each of them. It starts no machine.
	Parts(ctx context.Context) []Part
}
