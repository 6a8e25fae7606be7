package guest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// tail keeps the last max bytes of what is written to it.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, len(p)-t.max):]
	if over := len(t.buf) + len(p) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// transcript writes down what was run in the guest and what came of it.
type transcript struct {
	mu      sync.Mutex
	w       io.Writer // may be nil
	secrets *strings.Replacer
}

func newTranscript(w io.Writer, secrets []string) *transcript {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, redacted)
		}
	}
	return &transcript{w: w, secrets: strings.NewReplacer(pairs...)}
}

// shownOutput is how much of a stream a transcript shows, in bytes.
const shownOutput = 256 << 10

// record writes one entry. A transcript that can't be written fails nothing.
func (t *transcript) record(began time.Time, what string, stdout, stderr string, exit int, err error) {
	if t.w == nil {
		return
	}
	var b strings.Builder
	end := fmt.Sprintf("exit %d", exit)
	if err != nil {
		end = err.Error()
	}
	fmt.Fprintf(&b, "== %s  %s  (%s)  %s\n", began.UTC().Format("2006-01-02T15:04:05.000Z"), what,
		time.Since(began).Round(time.Millisecond), end)
	for _, s := range []struct{ name, text string }{{"stdout", stdout}, {"stderr", stderr}} {
		if s.text == "" {
			continue
		}
		text := strings.ReplaceAll(s.text, "\r\n", "\n")
		if cut := len(text) - shownOutput; cut > 0 {
			text = fmt.Sprintf("[%d bytes left out]\n", cut) + text[cut:]
		}
		fmt.Fprintf(&b, "-- %s\n%s\n", s.name, strings.TrimRight(text, "\n"))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.secrets.WriteString(t.w, strings.ToValidUTF8(b.String(), "\uFFFD"))
}
