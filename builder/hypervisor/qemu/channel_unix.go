//go:build unix

package qemu

import (
	"context"
	"net"
	"os"
	"syscall"
)

// channel is how a QEMU that is about to start reaches its monitor. It is a pair
// of connected sockets, one of which QEMU inherits: there is no name that
// another process could connect to, none that could be too long for a socket's
// address, and none to clean up.
type channel struct{ ours, theirs *os.File }

func newChannel() (*channel, error) {
	// Held, so that no child is forked before both ends are marked as not to be inherited.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return &channel{os.NewFile(uintptr(fds[0]), "monitor"), os.NewFile(uintptr(fds[1]), "monitor")}, nil
}

// option tells QEMU where its end is: the first file it inherits.
func (c *channel) option() string { return "fd=3" }

func (c *channel) files() []*os.File { return []*os.File{c.theirs} }

// accept returns our end. It is called once QEMU runs.
func (c *channel) accept(context.Context, <-chan struct{}) (net.Conn, error) {
	c.theirs.Close() // else its end would not be noticed
	return net.FileConn(c.ours)
}

// close closes what accept has not handed out.
func (c *channel) close() {
	c.ours.Close()
	c.theirs.Close()
}
