package ui

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// terminal says what the output may use, and how to read the size of the
// terminal: size is nil where a live display can't be shown.
func (o Options) terminal() (k look, size func() (columns, rows int)) {
	f, ok := o.Err.(*os.File)
	tty := ok && term.IsTerminal(int(f.Fd()))
	able := tty && o.moves() && enableEscapes(f)
	if able {
		measure := func() (int, int) {
			columns, rows, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0, 0
			}
			return columns, rows
		}
		if columns, _ := measure(); columns > 0 { // a terminal without a size shows nothing
			size = measure
		}
	}
	switch o.Color {
	case ColorAlways:
		k.color = true
	case ColorNever:
	default:
		k.color = able && o.Getenv("NO_COLOR") == "" // https://no-color.org
	}
	k.unicode = tty && o.unicode()
	return k, size
}

// moves says whether the terminal knows escape sequences, going by TERM.
func (o Options) moves() bool {
	switch o.Getenv("TERM") {
	case "dumb":
		return false
	case "":
		return runtime.GOOS == "windows" // consoles there set none
	}
	return true
}

// unicode says whether the terminal is likely to show more than ASCII: by the
// locale, on Windows by the kind of console.
func (o Options) unicode() bool {
	if runtime.GOOS == "windows" {
		return o.Getenv("WT_SESSION") != ""
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(o.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
