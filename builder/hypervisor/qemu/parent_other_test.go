//go:build !linux

package qemu

// parent is played on Linux only.
func parent() {}
