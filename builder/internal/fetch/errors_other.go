//go:build !windows

package fetch

import (
	"errors"
	"syscall"
)

// isRefused says whether nothing listens at an address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// isDiskFull knows quotas too.
func isDiskFull(err error) bool { return errors.Is(err, syscall.EDQUOT) }
