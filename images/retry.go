package images

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/report"
)

// How often a request is sent whose server breaks off or fails. A server that
// says that it is busy is asked until the budget is spent.
const maxTries = 4

// longestPause bounds the pauses that double, not those that a server asks for.
const longestPause = 30 * time.Second

// patience is the transport that waits: a server that is busy says for how
// long, and everybody who wants something of it waits until then.
type patience struct {
	next  http.RoundTripper
	agent string
	pause time.Duration
	sink  report.Sink

	mu     sync.Mutex
	until  map[string]time.Time // by host: nothing is sent before
	total  time.Duration        // the budget
	waited time.Duration        // what is spent of it
}

func newPatience(o ClientOptions) *patience {
	return &patience{next: o.Transport, agent: o.Agent, pause: o.Pause, sink: o.Sink, until: map[string]time.Time{}, total: o.Budget}
}

// busyError is a server that wants to be waited for longer than may be.
type busyError struct {
	host   string
	status int
	wait   time.Duration
	budget time.Duration
}

func (e *busyError) Error() string {
	return fmt.Sprintf("%s answers %d %s and asks to wait %s, which the budget of %s does not allow", e.host, e.status, http.StatusText(e.status),
		e.wait.Round(time.Second), e.budget)
}

// RoundTrip sends a request, again where that can help and its body can be had
// again. One whose body can't is answered as it is; who sent it sends it anew.
func (p *patience) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	for try := 1; ; try++ {
		if err := p.gate(ctx, req.URL.Host); err != nil {
			return nil, err
		}
		out := req.Clone(ctx)
		out.Header.Set("User-Agent", p.agent)
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			out.Body = body
		}
		resp, err := p.next.RoundTrip(out)
		wait, why := p.judge(resp, err, try)
		if why == "" || ctx.Err() != nil {
			return resp, err
		}
		if busy := p.hold(req.URL.Host, resp, wait, why); busy != nil {
			if err != nil {
				return nil, err
			}
			return nil, busy
		}
		if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return resp, err
		}
		if resp != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			resp.Body.Close()
		}
	}
}

// judge says for how long to wait before the request is sent again; why is
// empty where it is not to be.
func (p *patience) judge(resp *http.Response, err error, try int) (wait time.Duration, why string) {
	wait = min(p.pause<<min(try-1, 8), longestPause)
	if err != nil {
		if try >= maxTries || !worthwhile(err) {
			return 0, ""
		}
		return wait, err.Error()
	}
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		if after, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			wait = after
		}
	case s == http.StatusRequestTimeout, s >= 500 && s != http.StatusNotImplemented:
		if try >= maxTries {
			return 0, ""
		}
	default:
		return 0, ""
	}
	return wait, fmt.Sprintf("answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	if sec, err := strconv.Atoi(text); err == nil && sec >= 0 {
		return time.Duration(min(sec, 1<<30)) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// hold keeps everybody from a host for a while, if the budget allows that.
// Pauses that overlap are spent once.
func (p *patience) hold(host string, resp *http.Response, wait time.Duration, why string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	until := now.Add(wait)
	more := until.Sub(later(now, p.until[host]))
	if more <= 0 {
		return nil
	}
	if p.waited+more > p.total {
		busy := &busyError{host: host, wait: wait, budget: p.total}
		if resp != nil {
			busy.status = resp.StatusCode
			resp.Body.Close()
		}
		return busy
	}
	p.waited += more
	p.until[host] = until
	p.sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%s: %s; going on in %s", host, why, wait.Round(time.Millisecond))})
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// gate waits until a host may be asked.
func (p *patience) gate(ctx context.Context, host string) error {
	for {
		p.mu.Lock()
		wait := time.Until(p.until[host])
		p.mu.Unlock()
		if wait <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// worthwhile says whether a request that got no answer may get one later: not
// where the server's certificate or name is wrong.
func worthwhile(err error) bool {
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid), errors.As(err, &verify), errors.As(err, &record),
		errors.Is(err, http.ErrSchemeMismatch), errors.Is(err, context.Canceled), errors.Is(err, errContent):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	}
	return true
}
