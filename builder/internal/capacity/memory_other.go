//go:build !linux && !darwin && !windows

package capacity

// RAM can't be measured there.
func RAM() (Memory, error) { return Memory{}, errUnknown }
