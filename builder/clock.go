package builder

import (
	"github.com/wbox-dev/wbox/builder/stage"
)

// clock adds up expected times as the engine runs stages: each once its inputs
// are there, side by side, but one virtual machine at a time.
type clock struct {
	done map[string]float64 // stage -> when it is done, in seconds
	vm   float64            // when the last machine so far is off
	last float64
}

func newClock() *clock { return &clock{done: map[string]float64{}} }

// run adds a stage that takes so many seconds. Stages come in the order of the
// pipeline.
func (c *clock) run(s stage.Stage, seconds float64) {
	begin := 0.0
	for _, in := range s.Inputs() {
		begin = max(begin, c.done[in.From])
	}
	n, ok := s.(stage.Needer)
	vm := ok && n.Needs().VM && seconds > 0
	if vm {
		begin = max(begin, c.vm)
	}
	end := begin + seconds
	if vm {
		c.vm = end
	}
	c.done[s.Name()] = end
	c.last = max(c.last, end)
}

// end is when all is done.
func (c *clock) end() float64 { return c.last }
