//go:build !windows

package capacity

import (
	"errors"
	"syscall"
)

// IsFull says whether err is that of a file system, or a quota, that is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
