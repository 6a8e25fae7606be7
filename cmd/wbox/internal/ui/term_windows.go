package ui

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes makes the console understand escape sequences and says whether
// it does; those before Windows 10 don't.
func enableEscapes(f *os.File) bool {
	h := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
