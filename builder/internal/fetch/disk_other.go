//go:build !windows

package fetch

import (
	"errors"
	"syscall"
)

// isDiskFull knows quotas too.
func isDiskFull(err error) bool { return errors.Is(err, syscall.EDQUOT) }
