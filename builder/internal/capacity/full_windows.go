package capacity

import (
	"errors"

	"golang.org/x/sys/windows"
)

// IsFull says whether err is that of a file system that is full.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
