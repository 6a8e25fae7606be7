package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ReadFile returns the last limit bytes of a text file in the guest; nothing
// where the file does not exist. The path is absolute, in printable ASCII.
func (s *Session) ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	if !printable.MatchString(path) || limit <= 0 {
		return nil, fmt.Errorf("the guest's file %q can't be asked for", path)
	}
	bounded, cancel := s.bound(ctx, 0)
	defer cancel()
	r, script := readRequest(path, limit)
	p, err := s.ask(bounded, r, script, int(limit))
	if err = because(ctx, bounded, err); err != nil {
		return nil, fmt.Errorf("reading %s in the guest: %w", path, err)
	}
	if p.exit != 0 {
		return nil, fmt.Errorf("reading %s in the guest: exit code %d, %.300s", path, p.exit, strings.TrimSpace(p.stderr))
	}
	return p.stdout, nil
}

// What CollectLogs brings, each bounded in size and time.
const (
	logSize  = 1 << 20
	logLimit = time.Minute
)

// logFiles are what a failed installation, feature or service leaves behind,
// and below which name it is kept.
func logFiles() []struct{ path, name string } {
	return []struct{ path, name string }{
		{`C:\Windows\Panther\setupact.log`, "panther-setupact.log"},
		{`C:\Windows\Panther\setuperr.log`, "panther-setuperr.log"},
		{`C:\Windows\Panther\UnattendGC\setupact.log`, "unattendgc-setupact.log"},
		{`C:\Windows\Panther\UnattendGC\setuperr.log`, "unattendgc-setuperr.log"},
		{`C:\Windows\System32\Sysprep\Panther\setupact.log`, "sysprep-setupact.log"},
		{`C:\Windows\Logs\CBS\CBS.log`, "cbs.log"},
		{`C:\Windows\Logs\DISM\dism.log`, "dism.log"},
	}
}

// CollectLogs writes the guest's logs into dir, which it makes. It brings what it
// can get and ends with the connection; the error says what is missing.
func (s *Session) CollectLogs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var missing []error
	for _, f := range logFiles() {
		one, cancel := context.WithTimeout(ctx, logLimit)
		data, err := s.ReadFile(one, f.path, logSize)
		cancel()
		if err := keep(dir, f.name, data, err); err != nil {
			missing = append(missing, err)
		}
		if lost(ctx, err) {
			return errors.Join(missing...)
		}
	}
	for _, log := range []string{"System", "Application", "Setup"} {
		one, cancel := s.bound(ctx, logLimit)
		line := "wevtutil.exe qe " + log + " /c:300 /rd:true /f:text"
		p, err := s.run(one, line, line, logSize)
		cancel()
		if err == nil && p.exit != 0 {
			err = fmt.Errorf("reading the event log %s: exit code %d", log, p.exit)
		}
		if err := keep(dir, "events-"+strings.ToLower(log)+".txt", p.stdout, err); err != nil {
			missing = append(missing, err)
		}
		if lost(ctx, err) {
			break
		}
	}
	return errors.Join(missing...)
}

// lost says that asking for more is of no use.
func lost(ctx context.Context, err error) bool {
	var u *Unknown
	return ctx.Err() != nil || errors.As(err, &u) || errors.Is(err, ErrRefused)
}

// keep writes what was read, also what was read before an error.
func keep(dir, name string, data []byte, err error) error {
	if len(data) > 0 {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return err
}
