package guestos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// unserved is a TCP port that nobody serves.
const unserved = 1

// Outside says, by an error, that the network does not lead to the gateway. A
// gateway that refuses a connection is there; QEMU with restrict=on drops it.
func Outside(ctx context.Context, gateway netip.Addr) error {
	dialer := net.Dialer{Timeout: 3 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp4", netip.AddrPortFrom(gateway, unserved).String())
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, unix.ECONNREFUSED):
		return nil
	}
	return fmt.Errorf("asking the gateway: %w", err)
}
