package guestos

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Console writes lines to the kernel's log, which shows them on the screen and
// on the first serial port. It is safe for concurrent use.
type Console struct {
	mu   sync.Mutex
	file *os.File
}

// OpenConsole opens the kernel's log; without one, lines go to standard error.
func OpenConsole() *Console {
	file, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		file = os.Stderr
	}
	return &Console{file: file}
}

// Printf writes a message, a line for each of its lines. The level, critical, is
// above what the kernel is told to show.
func (c *Console) Printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range strings.Split(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n") {
		fmt.Fprintf(c.file, "<2>WBOX-STANDIN: %.900s\n", line)
	}
}

// StandardStreams makes the kernel's console this process's standard output and
// error, so that a crash of it can be read on the serial port.
func StandardStreams() error {
	console, err := os.OpenFile("/dev/console", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening the console: %w", err)
	}
	for fd := range 3 {
		if err := unix.Dup2(int(console.Fd()), fd); err != nil {
			return fmt.Errorf("opening the console: %w", err)
		}
	}
	return nil
}
