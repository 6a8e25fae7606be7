package gosource

import (
	"regexp"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// progressInterval keeps a compile of 1,900 packages from making as many events.
const progressInterval = 250 * time.Millisecond

// watcher reads what `go build -v` prints: the import path of each package as
// its compile begins, "# pkg" before the errors of one, and errors.
type watcher struct {
	sink     report.Sink
	programs []Program
	goos     string // the system that is compiled for
	total    int64
	done     int64
	last     time.Time
	pkg      string // of the errors that follow
	firstErr string // "file:line:col: message"
	firstPkg string // its package
}

func newWatcher(sink report.Sink, total int64, programs []Program) *watcher {
	return &watcher{sink: sink, total: total, programs: programs, goos: Windows}
}

// line takes the next line of standard error.
func (w *watcher) line(text string) {
	switch {
	case strings.HasPrefix(text, "# "):
		w.pkg = strings.TrimPrefix(text, "# ")
	case isImportPath(text):
		w.done++
		if program, ok := w.programOf(text); ok {
			w.emit("linking " + FileOf(program, w.goos))
			return
		}
		if now := time.Now(); now.Sub(w.last) >= progressInterval {
			w.last = now
			w.emit("compiling " + text)
		}
	case w.firstErr == "":
		if e, ok := compilerError(text); ok {
			w.firstErr, w.firstPkg = e, w.pkg
		}
	}
}

func (w *watcher) emit(msg string) {
	w.sink.Emit(report.Event{Kind: report.StageProgress, Message: msg, Done: min(w.done, w.total), Total: w.total})
}

// programOf returns the program whose main package pkg is. It is the last one
// of a program that is compiled; what follows is the link.
func (w *watcher) programOf(pkg string) (string, bool) {
	for _, p := range w.programs {
		if p.Package == pkg {
			return p.Name, true
		}
	}
	return "", false
}

// isImportPath says whether a line is nothing but an import path.
func isImportPath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:\\\"") && !strings.HasSuffix(line, ".go")
}

// compilerError returns a compiler's or linker's "file:line: message", the
// file named from its module on: the place of the module cache says nothing.
func compilerError(line string) (string, bool) {
	m := regexp.MustCompile(`^(.+\.(?:go|s)):(\d+):(.*)$`).FindStringSubmatch(strings.TrimSpace(line))
	if m == nil {
		return "", false
	}
	file := strings.ReplaceAll(m[1], `\`, "/")
	if _, inside, ok := strings.Cut(file, "/pkg/mod/"); ok {
		file = inside
	}
	return file + ":" + m[2] + ":" + m[3], true
}
