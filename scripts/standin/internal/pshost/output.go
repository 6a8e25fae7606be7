package pshost

import (
	"io"
	"sync"
)

// output queues what a request prints, without a bound: whoever reads it may be
// slow, and one slow reader must not hold up the others.
type output struct {
	more chan struct{}

	mu    sync.Mutex
	queue []message
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

func (o *output) add(m message) {
	o.mu.Lock()
	o.queue = append(o.queue, m)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// deliver writes what is queued and says whether the request has ended.
func (o *output) deliver(stdout, stderr io.Writer) (done bool, exit int, err error) {
	o.mu.Lock()
	queue := o.queue
	o.queue = nil
	o.mu.Unlock()
	for _, m := range queue {
		if m.Exit != nil {
			return true, *m.Exit, nil
		}
		to := stdout
		if m.Stream == "stderr" {
			to = stderr
		}
		if _, err := io.WriteString(to, m.Data); err != nil {
			return false, 1, err
		}
	}
	return false, 0, nil
}
