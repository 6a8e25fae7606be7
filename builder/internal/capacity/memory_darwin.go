package capacity

import "golang.org/x/sys/unix"

// RAM measures the memory of this machine. How much of it programs could get
// is not a single figure there, so it is unknown.
func RAM() (Memory, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Memory{}, err
	}
	return Memory{Total: int64(total)}, nil
}
