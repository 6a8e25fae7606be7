package guestos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Network configures the loopback interface and the first network card with a
// fixed address, the one that QEMU's user network gives its only guest, and
// returns the card's name.
func Network(ctx context.Context, address netip.Prefix, gateway netip.Addr) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("there is no network card"))
	defer cancel()
	card := ""
	err := poll(ctx, 50*time.Millisecond, func() bool {
		found, err := filepath.Glob("/sys/class/net/e*")
		if err == nil && len(found) > 0 {
			card = filepath.Base(found[0])
		}
		return card != ""
	})
	if err != nil {
		return "", err
	}
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", fmt.Errorf("configuring the network: %w", err)
	}
	defer unix.Close(sock)
	for _, c := range []struct {
		name    string
		address netip.Prefix
	}{{"lo", netip.MustParsePrefix("127.0.0.1/8")}, {card, address}} {
		if err := configure(sock, c.name, c.address); err != nil {
			return "", fmt.Errorf("configuring %s: %w", c.name, err)
		}
	}
	if err := addDefaultRoute(sock, gateway); err != nil {
		return "", fmt.Errorf("setting the default route: %w", err)
	}
	return card, nil
}

func configure(sock int, name string, prefix netip.Prefix) error {
	mask := binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-prefix.Bits()))
	address := prefix.Addr().As4()
	for _, step := range []struct {
		request uint
		value   []byte
	}{{unix.SIOCSIFADDR, address[:]}, {unix.SIOCSIFNETMASK, mask}} {
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := req.SetInet4Addr(step.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(sock, step.request, req); err != nil {
			return os.NewSyscallError("ioctl", err)
		}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("ioctl", unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, req))
}

// rtentry is struct rtentry of <linux/route.h> on 64-bit machines.
type rtentry struct {
	_                 uint64
	dst, gateway, msk [16]byte
	flags             uint16
	_                 [6]byte
	_                 [64]byte
}

func addDefaultRoute(sock int, gateway netip.Addr) error {
	inet := func(a [4]byte) (s [16]byte) {
		binary.NativeEndian.PutUint16(s[:], unix.AF_INET)
		copy(s[4:], a[:])
		return s
	}
	route := rtentry{dst: inet([4]byte{}), gateway: inet(gateway.As4()), msk: inet([4]byte{}), flags: unix.RTF_UP | unix.RTF_GATEWAY}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(sock), unix.SIOCADDRT, uintptr(unsafe.Pointer(&route))); errno != 0 && errno != unix.EEXIST {
		return errno
	}
	return nil
}
