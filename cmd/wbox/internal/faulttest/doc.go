// Package faulttest runs wbox as a child process to which the worst happens:
// killed, interrupted, out of disk, twice at a time. It looks at what is left
// afterwards. Everything of the child is real (command line, store, qemu-img,
// packing, catalog) but, where a test doesn't ask for QEMU, the machines:
// these are fakes that keep their state on their disks, so that a layer which
// lost its parent shows. It is for tests only; nothing else may import it.
package faulttest
