package winrmd

import (
	"context"
	"io"
	"sync"
	"time"
)

// maxBuffered is how many bytes of output, and of input, wait for the other side.
const maxBuffered = 256 << 10

// command is a running or ended command and the bytes under way.
type command struct {
	cancel context.CancelFunc

	mu      sync.Mutex
	wake    chan struct{} // closed and replaced at every change
	in      []byte
	inEnd   bool
	out     [2][]byte // stdout, stderr
	dropped bool      // nobody will fetch output any more
	done    bool
	exit    int
}

// change must be called with mu held.
func (c *command) change() {
	close(c.wake)
	c.wake = make(chan struct{})
}

// startCommand runs line; ctx bounds its life.
func startCommand(ctx context.Context, sh Shell, user, line string) *command {
	ctx, cancel := context.WithCancel(ctx)
	c := &command{cancel: cancel, wake: make(chan struct{})}
	go func() {
		defer cancel()
		exit := sh.Run(ctx, user, line, stdin{ctx, c}, output{ctx, c, 0}, output{ctx, c, 1})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done, c.exit, c.in = true, exit, nil
		c.change()
	}()
	return c
}

// terminate ends the command and forgets its output.
func (c *command) terminate() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = true
	c.out = [2][]byte{}
	c.change()
}

func (c *command) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// wait blocks until the next change, the command's ctx, ctx, or the timer; it
// is called with mu held and returns with mu held. It returns false where
// nothing changed.
func (c *command) wait(ctx context.Context, timer <-chan time.Time) bool {
	wake := c.wake
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	case <-timer:
		return false
	}
}

// feed appends all of data to the input, once less than maxBuffered is waiting
// there; false means that the time was up and nothing was taken.
func (c *command) feed(ctx context.Context, data []byte, end bool, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.in) >= maxBuffered && !c.done {
		if !c.wait(ctx, timer.C) {
			return false
		}
	}
	if !c.done && !c.inEnd { // a command that ended takes and forgets everything
		c.in = append(c.in, data...)
		c.inEnd = end
		c.change()
	}
	return true
}

// fetch waits for output, at most timeout, and takes up to limit bytes of it.
// ok is false where the time was up, or ctx ended, without any.
func (c *command) fetch(ctx context.Context, limit int, timeout time.Duration) (out [2][]byte, done bool, exit int, ok bool) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out[0]) == 0 && len(c.out[1]) == 0 && !c.done {
		if !c.wait(ctx, timer.C) {
			return out, false, 0, false
		}
	}
	for i := range c.out {
		n := min(limit, len(c.out[i]))
		out[i], c.out[i] = c.out[i][:n:n], c.out[i][n:]
		limit -= n
		if len(c.out[i]) == 0 {
			c.out[i] = nil // let the memory go
		}
	}
	c.change()
	return out, c.done && len(c.out[0]) == 0 && len(c.out[1]) == 0, c.exit, true
}

// stdin is the command's side of its input.
type stdin struct {
	ctx context.Context
	c   *command
}

func (s stdin) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.in) == 0 {
		if c.inEnd || s.ctx.Err() != nil {
			return 0, io.EOF
		}
		c.wait(s.ctx, nil)
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	c.change()
	return n, nil
}

// output is the command's side of one of its output streams.
type output struct {
	ctx context.Context
	c   *command
	i   int
}

func (o output) Write(p []byte) (n int, err error) {
	c := o.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		if c.dropped {
			return n, io.ErrClosedPipe
		}
		if room := min(maxBuffered-len(c.out[o.i]), len(p)); room > 0 {
			c.out[o.i] = append(c.out[o.i], p[:room]...)
			p, n = p[room:], n+room
			c.change()
			continue
		}
		if !c.wait(o.ctx, nil) {
			return n, o.ctx.Err()
		}
	}
	return n, nil
}
