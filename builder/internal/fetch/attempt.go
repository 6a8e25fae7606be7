package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

// errStalled is the cause of a try that was ended for sending next to nothing.
var errStalled = errors.New("the server sends next to nothing")

// attempt asks the server once, for what is missing, and stores what it sends.
// A nil error says that the server kept its word, not that the file is whole.
func (d *download) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var m meter
	go d.watch(ctx, cancel, &m)
	if d.offset > 0 && d.from.validator() == "" && d.Digest == "" {
		if err := d.restart(); err != nil { // nothing would tell that the halves belong together
			return err
		}
	}
	req, err := d.request(ctx)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: d.client.Transport, CheckRedirect: checkRedirect}
	m.waiting.Store(true)
	resp, err := client.Do(req)
	m.waiting.Store(false)
	if err != nil {
		return d.requestError(ctx, err)
	}
	defer resp.Body.Close()
	want, err := d.accept(resp)
	if err != nil || d.whole {
		return err
	}
	resp.Body = &meteredBody{resp.Body, &m}
	return d.store(ctx, resp, want)
}

// meter counts what the network brings, and knows whether it is waited for:
// time that the disk takes is not the server's fault.
type meter struct {
	got     atomic.Int64
	waiting atomic.Bool
}

type meteredBody struct {
	io.ReadCloser
	m *meter
}

func (b *meteredBody) Read(p []byte) (int, error) {
	b.m.waiting.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.m.waiting.Store(false)
	b.m.got.Add(int64(n))
	return n, err
}

// watch ends a try that brings less than MinRate over a StallWindow, be it in
// connecting, in headers or in the body.
func (d *download) watch(ctx context.Context, cancel context.CancelCauseFunc, m *meter) {
	tick := time.NewTicker(d.client.StallWindow)
	defer tick.Stop()
	need := int64(d.client.StallWindow.Seconds() * float64(d.client.MinRate))
	for last := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := m.got.Load()
		if m.waiting.Load() && now-last < max(need, 1) {
			cancel(fmt.Errorf("%w: %d bytes in %s", errStalled, now-last, d.client.StallWindow))
			return
		}
		last = now
	}
}

// request asks for what is missing.
func (d *download) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, d.problem(fault.Usage, "is no URL that can be asked for", "", nil)
	}
	req.Header.Set("User-Agent", "wbox")
	req.Header.Set("Accept-Encoding", "identity") // the bytes as they are: a digest is of them
	switch {
	case d.offset > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.offset))
		if v := d.from.validator(); v != "" {
			req.Header.Set("If-Range", v)
		} else {
			d.inherited = true
		}
	case d.rejected != nil && d.rejected.URL == d.URL && d.rejected.ETag != "":
		req.Header.Set("If-None-Match", d.rejected.ETag)
	case d.rejected != nil && d.rejected.URL == d.URL && d.rejected.LastModified != "":
		req.Header.Set("If-Modified-Since", d.rejected.LastModified)
	}
	return req, nil
}

// accept checks the head of an answer and makes the part ready for its body.
// It returns how long the body must be, -1 where the server does not say.
func (d *download) accept(resp *http.Response) (want int64, err error) {
	switch resp.StatusCode {
	case http.StatusOK:
		want, err = d.acceptWhole(resp)
	case http.StatusPartialContent:
		want, err = d.acceptRange(resp)
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, d.acceptNothingLeft(resp)
	case http.StatusNotModified:
		if d.rejected != nil {
			return 0, d.stillRejected()
		}
		return 0, d.statusError(resp)
	default:
		return 0, d.statusError(resp)
	}
	if err != nil {
		return 0, err
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return 0, d.problem(fault.Network, "the server, or a proxy on the way, sends it compressed ("+e+"), though that was declined", "", nil)
	}
	if d.offset == 0 {
		d.from = origin{URL: d.URL, ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified"), Size: max(d.total, 0)}
		if err := writeOrigin(d.Path+PartSuffix, d.from); err != nil {
			return 0, d.diskProblem(err)
		}
	}
	return want, nil
}

// acceptWhole is for status 200: the file from its start, asked for or not.
func (d *download) acceptWhole(resp *http.Response) (int64, error) {
	if d.offset > 0 {
		d.note("the file on the server has changed, or it can't go on where it ended; starting again")
		if err := d.restart(); err != nil {
			return 0, err
		}
	}
	n := resp.ContentLength
	if n < 0 && d.Digest == "" && len(resp.TransferEncoding) == 0 && resp.ProtoMajor < 2 {
		return 0, d.problem(fault.Input, "is neither pinned nor does the server say its length, so a cut can't be noticed", "pin its SHA-256", nil)
	}
	if n < 0 {
		return -1, nil
	}
	if n == 0 {
		return 0, d.problem(fault.Input, "is empty on the server", "", nil)
	}
	err := d.checkTotal(n)
	if err != nil {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, sniffLen)) // a page says more than its length
		if p := d.sniff(resp, head); p != nil {
			return 0, p
		}
	}
	return n, err
}

// acceptRange is for status 206.
func (d *download) acceptRange(resp *http.Response) (int64, error) {
	if d.offset == 0 {
		return 0, d.problem(fault.Network, "the server sent a part of it, which nobody asked for", "", nil)
	}
	start, end, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
	etag := resp.Header.Get("ETag")
	switch {
	case !ok || start != d.offset || total >= 0 && (end >= total || d.total > 0 && total != d.total):
		return 0, d.again(fmt.Sprintf("the server answered with the wrong range (%q for bytes from %d)", resp.Header.Get("Content-Range"), d.offset))
	case etag != "" && d.from.ETag != "" && etag != d.from.ETag:
		return 0, d.again("the file on the server has changed")
	case resp.ContentLength >= 0 && resp.ContentLength != end-start+1:
		return 0, d.again("the server's range and length don't agree")
	}
	if total >= 0 {
		return end - start + 1, d.checkTotal(total)
	}
	return end - start + 1, nil
}

// acceptNothingLeft is for status 416: the part is whole, or not of this file.
func (d *download) acceptNothingLeft(resp *http.Response) error {
	if d.offset == 0 {
		return d.statusError(resp)
	}
	_, _, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
	if ok && total == d.offset && (d.Size == 0 || d.Size == total) || !ok && d.Size > 0 && d.Size == d.offset {
		d.whole = true
		return nil
	}
	if !ok && d.Digest != "" && d.digest() == d.Digest {
		d.whole = true
		return nil
	}
	return d.again("the server has no bytes after those that are here")
}

// again throws the part away and gives an error that is retried.
func (d *download) again(why string) error {
	if err := d.restart(); err != nil {
		return err
	}
	return &retryable{err: errors.New(why)}
}

// checkTotal compares the server's idea of the size with ours.
func (d *download) checkTotal(total int64) error {
	if d.Size > 0 && total != d.Size {
		return d.problem(fault.Input, fmt.Sprintf("has %d bytes on the server, not %d: it is another file", total, d.Size), "", nil)
	}
	if total > d.Limit {
		return d.problem(fault.Input, fmt.Sprintf("has %d bytes on the server, more than the %d that are allowed", total, d.Limit), "", nil)
	}
	d.total = total
	return nil
}

// store writes the body into the part. want is its length, -1 where unknown.
func (d *download) store(ctx context.Context, resp *http.Response, want int64) error {
	buf := make([]byte, 256<<10)
	var n int64
	for {
		k, err := resp.Body.Read(buf)
		if k > 0 {
			chunk := buf[:k]
			if d.offset == 0 {
				chunk, err = fill(resp.Body, buf, k, err)
				if p := d.sniff(resp, chunk); p != nil {
					return p
				}
			}
			n += int64(len(chunk))
			if err := d.write(chunk); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return d.requestError(ctx, err)
		}
	}
	d.progress(true)
	switch {
	case want >= 0 && n < want:
		return &retryable{err: fmt.Errorf("the connection ended after %d of %d bytes", n, want)}
	case d.offset == 0:
		return d.problem(fault.Input, "is empty on the server", "", nil)
	}
	if want < 0 {
		return d.ended(resp)
	}
	return nil
}

// ended is for a body whose length was not told: is it whole?
func (d *download) ended(resp *http.Response) error {
	told := len(resp.TransferEncoding) > 0 || resp.ProtoMajor >= 2 // else the connection's end is the body's, cut or not
	switch {
	case d.Size > 0 && d.offset < d.Size:
		return &retryable{err: fmt.Errorf("the server ended the file after %d of %d bytes", d.offset, d.Size)}
	case !told && d.digest() != d.Digest:
		return &retryable{err: fmt.Errorf("the connection ended after %d bytes, perhaps too soon", d.offset)}
	}
	d.whole = true
	return nil
}

// fill reads on until there is enough to see what a body is.
func fill(r io.Reader, buf []byte, k int, err error) ([]byte, error) {
	for k < sniffLen && err == nil {
		var more int
		more, err = r.Read(buf[k:])
		k += more
	}
	return buf[:k], err
}

// write appends to the part.
func (d *download) write(b []byte) error {
	limit := d.Limit
	if d.total > 0 {
		limit = d.total
	}
	if d.offset+int64(len(b)) > limit {
		if err := d.restart(); err != nil {
			return err
		}
		return d.problem(fault.Input, fmt.Sprintf("is longer on the server than the %d bytes it should have", limit), "", nil)
	}
	n, err := d.part.Write(b)
	d.hash.Write(b[:n])
	d.offset += int64(n)
	d.fetched += int64(n)
	if err != nil {
		return d.diskProblem(err)
	}
	d.progress(false)
	return nil
}

// progress tells how far it is, not too often.
func (d *download) progress(now bool) {
	if t := time.Now(); now || t.Sub(d.shown) > 500*time.Millisecond {
		d.shown = t
		d.client.Sink.Emit(report.Event{Kind: report.StageProgress, Message: "downloading " + d.Name, Done: d.offset, Total: d.total})
	}
}

func (d *download) note(text string) {
	d.client.Sink.Emit(report.Event{Kind: report.Note, Message: d.Name + ": " + text})
}

// sniff refuses a page that was sent in place of the file.
func (d *download) sniff(resp *http.Response, head []byte) error {
	what := looksLike(resp.Header.Get("Content-Type"), head, d.URL)
	if what == "" {
		return nil
	}
	if bytes.Contains(head, []byte("SentinelReject")) {
		return d.problem(fault.Network, "Microsoft's server has blocked this address for about 24 hours, as it does after many downloads",
			"wait, or get the file in another way: "+d.Fix, nil)
	}
	return d.problem(fault.Input, "the server sent "+what+" in place of the file (a login or error page, a captive network)",
		"open the URL in a browser to see what it wants", nil)
}
