package guest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// clixmlMark begins PowerShell's serialised error stream.
const clixmlMark = "#< CLIXML"

// decodeCLIXML replaces PowerShell's serialised records in stderr by their text;
// progress records are dropped. What it can't read stays as it is.
func decodeCLIXML(stderr []byte) string {
	var b strings.Builder
	rest := stderr
	for {
		before, after, found := bytes.Cut(rest, []byte(clixmlMark))
		b.Write(before)
		if !found {
			return b.String()
		}
		text, n, err := readObjects(after)
		if err != nil {
			b.WriteString(clixmlMark)
			b.Write(after)
			return b.String()
		}
		b.WriteString(text)
		rest = bytes.TrimLeft(after[n:], "\r\n")
	}
}

// readObjects reads one <Objs> element and returns its text and where it ends.
func readObjects(data []byte) (string, int, error) {
	var b strings.Builder
	d := xml.NewDecoder(bytes.NewReader(data))
	depth, shown := 0, false
	for {
		token, err := d.Token()
		if err != nil {
			if errors.Is(err, io.EOF) && depth == 0 {
				err = io.ErrUnexpectedEOF
			}
			return "", 0, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			if depth == 1 && t.Name.Local != "Objs" {
				return "", 0, errors.New("no Objs element")
			}
			// The streams' texts are S elements directly below Objs; those inside
			// of objects are fields of records.
			shown = depth == 2 && t.Name.Local == "S"
		case xml.EndElement:
			depth--
			shown = false
			if depth == 0 {
				return b.String(), int(d.InputOffset()), nil
			}
		case xml.CharData:
			if shown {
				b.WriteString(unescapeCLIXML(string(t)))
			}
		}
	}
}

var clixmlEscape = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// unescapeCLIXML undoes _xHHHH_, which stands for one UTF-16 unit; line ends
// become \n.
func unescapeCLIXML(s string) string {
	s = clixmlEscape.ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(e[2:6], 16, 16)
		if err != nil {
			return e
		}
		return string(rune(n))
	})
	return strings.ReplaceAll(s, "\r\n", "\n")
}
