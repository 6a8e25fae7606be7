package fetch

import (
	"bytes"
	"html"
	"mime"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// sniffLen is how much of a body is needed to see what it is.
const sniffLen = 1024

var titlePattern = regexp.MustCompile(`(?is)<title[^>]*>([^<]{1,200})`)

// looksLike says what a body is that can't be the file, or "". A URL that
// names such a file gets it.
func looksLike(contentType string, head []byte, rawURL string) string {
	ext := ""
	if u, err := url.Parse(rawURL); err == nil {
		ext = strings.ToLower(path.Ext(u.Path))
	}
	media, _, _ := mime.ParseMediaType(contentType)
	start := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))))
	isPage := media == "text/html" || media == "application/xhtml+xml"
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body", "<script"} {
		isPage = isPage || bytes.HasPrefix(start, []byte(tag))
	}
	switch {
	case isPage && ext != ".html" && ext != ".htm":
		if m := titlePattern.FindSubmatch(head); m != nil {
			return "an HTML page, titled " + strconv.Quote(strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " "))
		}
		return "an HTML page"
	case ext != ".json" && (media == "application/json" || media == "application/problem+json" || bytes.HasPrefix(start, []byte(`{"error`))):
		return "a JSON message"
	}
	return ""
}

// parseContentRange reads "bytes 5-9/10", "bytes 5-9/*" and "bytes */10". What
// is not told is -1.
func parseContentRange(text string) (start, end, total int64, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "bytes ")
	if !ok {
		return 0, 0, 0, false
	}
	span, size, ok := strings.Cut(strings.TrimSpace(rest), "/")
	if !ok {
		return 0, 0, 0, false
	}
	start, end, total = -1, -1, -1
	var bad bool
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		bad = bad || err != nil || n < 0
		return n
	}
	if size != "*" {
		total = number(size)
	}
	if span != "*" {
		from, to, both := strings.Cut(span, "-")
		start, end = number(from), number(to)
		bad = bad || !both || end < start
	} else if size == "*" {
		bad = true
	}
	return start, end, total, !bad
}
