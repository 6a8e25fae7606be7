package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// retryable is an error after which the server may be asked again.
type retryable struct {
	err   error
	after time.Duration // as the server wishes; 0 where it does not say
}

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }

// complete asks the server until the part is whole.
func (d *download) complete(ctx context.Context) error {
	if d.rejected != nil && d.rejected.URL == d.URL && d.rejected.ETag == "" && d.rejected.LastModified == "" && d.offset == 0 {
		return d.stillRejected() // nothing tells whether the server has another file by now
	}
	barren := 0 // tries in a row that brought nothing new
	for try := 1; !d.isWhole(); try++ {
		err := d.attempt(ctx)
		var again *retryable
		switch {
		case err == nil && !d.isWhole() && d.offset <= d.high:
			again = &retryable{err: errors.New("the server sends nothing new")}
		case err == nil:
			d.high = max(d.high, d.offset)
			barren = 0
			continue
		case interrupted(ctx, err):
			return context.Cause(ctx)
		case !errors.As(err, &again):
			return err
		}
		barren++
		if d.offset > d.high {
			barren = 1
		}
		d.high = max(d.high, d.offset)
		if barren >= d.client.Attempts || try >= maxTries {
			return d.problem(fault.Network, fmt.Sprintf("could not be downloaded in %d tries", try), d.retryFix(), again.err)
		}
		if again.after > d.client.MaxWait {
			return d.problem(fault.Network, fmt.Sprintf("the server asks to come back in %s", again.after.Round(time.Second)), d.retryFix(), again.err)
		}
		pause := max(again.after, d.backoff(barren))
		d.client.Sink.Emit(report.Event{Kind: report.Note, Message: fmt.Sprintf("%s: %v; trying again in %s", d.Name, again.err, pause.Round(time.Millisecond))})
		if err := d.client.wait(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// isWhole says whether the part is all there is of the file.
func (d *download) isWhole() bool {
	return d.whole || d.total > 0 && d.offset == d.total
}

// retryFix says that nothing is lost, and another way where there is one.
func (d *download) retryFix() string {
	fix := "run the same command again later"
	if d.offset > 0 {
		fix += ": what has arrived is kept, and it goes on from there"
	}
	if d.Fix != "" {
		fix += "; or " + d.Fix
	}
	return fix
}

// backoff grows with the barren tries in a row and is spread, so that many
// clients don't come back at the same moment.
func (d *download) backoff(barren int) time.Duration {
	b := min(d.client.Backoff<<min(barren-1, 10), time.Minute)
	return b + rand.N(b/4+1) //nolint:gosec // no secret depends on it
}

// statusError words a status that brings no file.
func (d *download) statusError(resp *http.Response) error {
	status := fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		if code == http.StatusNotImplemented || code == http.StatusHTTPVersionNotSupported {
			break
		}
		return &retryable{err: errors.New(status), after: retryAfter(resp.Header)}
	case code == http.StatusNotFound, code == http.StatusGone:
		return d.problem(fault.Input, "does not exist on the server ("+strconv.Itoa(code)+")", "", nil)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return d.problem(fault.Input, "the server refuses it to this client ("+strconv.Itoa(code)+")", "", nil)
	case code == http.StatusProxyAuthRequired:
		return d.proxyProblem(nil)
	case code >= 200 && code < 300:
		return d.problem(fault.Network, status+" without the file", "", nil)
	case code >= 300 && code < 400:
		return d.problem(fault.Network, status+" without saying where to go", "", nil)
	}
	return d.problem(fault.Network, status, "", nil)
}

func (d *download) proxyProblem(err error) error {
	return d.problem(fault.Network, "the proxy wants a name and a password", "put them into HTTPS_PROXY or HTTP_PROXY: http://NAME:PASSWORD@HOST:PORT", err)
}

// retryAfter reads the header in both its forms. A date is compared with the
// server's own clock, where it tells that.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseInt(text, 10, 32); err == nil && s >= 0 {
		return time.Duration(s) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0)
}

// requestError decides whether an error of the connection is retried.
func (d *download) requestError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return &retryable{err: cause}
	} else if cause != nil {
		return cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the URL is named already, and without its secrets
	}
	var (
		problem *fault.Problem
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		dns     *net.DNSError
		op      *net.OpError
	)
	switch {
	case errors.As(err, &problem):
		problem.Field, problem.Value = d.Field, Redact(d.URL)
		return problem
	case errors.As(err, &cert):
		return d.problem(fault.Network, "the server's certificate was not accepted", "check this machine's clock and its certificate authorities (SSL_CERT_FILE)", cert.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return d.problem(fault.Network, "the server, or a proxy on the way, does not speak TLS there", "", nil)
	case errors.As(err, &dns) && dns.IsNotFound:
		return d.problem(fault.Network, "its host is not known here", "check the network, the name and the proxy (HTTPS_PROXY)", dns)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return d.problem(fault.Network, "the proxy can't be reached or refuses", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY", op.Err)
	case isRefused(err) && d.fetched == 0: // in the middle of a download the server may be starting again
		return d.problem(fault.Network, "nothing answers at its address", "check the URL and the network", err)
	case err.Error() == http.StatusText(http.StatusProxyAuthRequired):
		return d.proxyProblem(nil)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = errors.New("the connection ended too soon")
	}
	return &retryable{err: err}
}

// diskProblem words an error of the file's side. None of them is retried.
func (d *download) diskProblem(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	p := d.problem(fault.Host, "can't be written to "+d.Path, "check the folder, and who may write there", err)
	if errors.Is(err, syscall.ENOSPC) || isDiskFull(err) {
		p.Why = "the disk is full while it is written to " + d.Path
		p.Fix = "make room; what has arrived is kept, and it goes on from there"
		if d.total > d.offset {
			p.Fix = fmt.Sprintf("make room for %d more bytes; what has arrived is kept, and it goes on from there", d.total-d.offset)
		}
	}
	return p
}
