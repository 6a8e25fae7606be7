package qemu

import (
	"context"
	"fmt"
	"net"
	"os"
)

// channel is how a QEMU that is about to start reaches its monitor: a port of
// the loopback interface on which we listen, since Windows passes no sockets on
// to children. It is open until QEMU has connected.
type channel struct{ listener net.Listener }

func newChannel() (*channel, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &channel{l}, nil
}

// option tells QEMU where to connect to.
func (c *channel) option() string {
	return fmt.Sprintf("host=127.0.0.1,port=%d", c.listener.Addr().(*net.TCPAddr).Port)
}

func (c *channel) files() []*os.File { return nil }

// accept waits for QEMU to connect, until ctx ends or QEMU does.
func (c *channel) accept(ctx context.Context, ended <-chan struct{}) (net.Conn, error) {
	accepted := make(chan struct{})
	defer close(accepted)
	go func() {
		select {
		case <-ctx.Done():
		case <-ended:
		case <-accepted:
		}
		c.listener.Close()
	}()
	conn, err := c.listener.Accept()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return conn, err
}

func (c *channel) close() { c.listener.Close() }
