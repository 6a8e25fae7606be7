package fetch

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isRefused knows the error of Windows' own sockets: syscall.ECONNREFUSED is
// another number there.
func isRefused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// isDiskFull knows Windows' own two errors.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
