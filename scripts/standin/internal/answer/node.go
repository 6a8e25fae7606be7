package answer

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

// The namespaces of an answer file.
const (
	unattendNS = "urn:schemas-microsoft-com:unattend"
	wcmNS      = "http://schemas.microsoft.com/WMIConfig/2002/State"
)

// node is one element of the file, with its path for errors.
type node struct {
	name     string
	path     string
	attrs    map[string]string // "wcm:action", "name", ...
	text     string
	children []*node
	used     bool
}

// Error is a refusal of Setup: where in the file, and why.
type Error struct {
	Path string // such as "windowsPE/Microsoft-Windows-Setup/UserData/ProductKey"
	Why  string
}

func (e *Error) Error() string { return e.Path + ": " + e.Why }

// reader collects refusals, so that all of them are reported at once.
type reader struct {
	errs []error
}

func (r *reader) fail(n *node, format string, args ...any) {
	r.errs = append(r.errs, &Error{Path: n.path, Why: fmt.Sprintf(format, args...)})
}

// parseTree reads the XML into nodes. Every element must be of the answer file's
// namespace; attributes of others are refused later, where they are looked up.
func parseTree(data []byte) (*node, error) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	var root *node
	var stack []*node
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the answer file: %w", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			n, err := newNode(t, stack)
			if err != nil {
				return nil, err
			}
			if len(stack) == 0 {
				root = n
			} else {
				parent := stack[len(stack)-1]
				parent.children = append(parent.children, n)
			}
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].text += string(t)
			}
		}
	}
	if root == nil {
		return nil, errors.New("reading the answer file: it holds no element")
	}
	return root, nil
}

func newNode(t xml.StartElement, stack []*node) (*node, error) {
	n := &node{name: t.Name.Local, attrs: map[string]string{}}
	n.path = n.name
	if len(stack) > 1 {
		n.path = stack[len(stack)-1].path + "/" + n.name
	}
	if t.Name.Space != unattendNS {
		return nil, &Error{Path: n.path, Why: fmt.Sprintf("namespace %q is not an answer file's", t.Name.Space)}
	}
	for _, a := range t.Attr {
		switch {
		case a.Name.Space == "xmlns" || a.Name.Local == "xmlns":
		case a.Name.Space == wcmNS:
			n.attrs["wcm:"+a.Name.Local] = a.Value
		case a.Name.Space == "":
			n.attrs[a.Name.Local] = a.Value
		default:
			return nil, &Error{Path: n.path, Why: fmt.Sprintf("attribute %s of namespace %q", a.Name.Local, a.Name.Space)}
		}
	}
	if name := n.attrs["name"]; name != "" && n.name == "component" {
		n.path = stack[len(stack)-1].path + "/" + name
	} else if pass := n.attrs["pass"]; n.name == "settings" {
		n.path = pass
	}
	return n, nil
}

// child returns the only child of that name, nil where there is none.
func (r *reader) child(n *node, name string) *node {
	if n == nil {
		return nil
	}
	var found *node
	for _, c := range n.children {
		if c.name != name {
			continue
		}
		if found != nil {
			r.fail(c, "is there twice")
		}
		c.used, found = true, c
	}
	return found
}

// list returns the children of that name, which must carry wcm:action="add", as
// Setup wants list items; they are the only kind of child.
func (r *reader) list(n *node, name string) []*node {
	if n == nil {
		return nil
	}
	var items []*node
	for _, c := range n.children {
		if c.name != name {
			continue
		}
		if c.attrs["wcm:action"] != "add" {
			r.fail(c, `a list item needs wcm:action="add"`)
		}
		delete(c.attrs, "wcm:action")
		c.used = true
		items = append(items, c)
	}
	r.done(n)
	return items
}

// done refuses what nobody asked for.
func (r *reader) done(n *node) {
	for _, c := range n.children {
		if !c.used {
			r.fail(c, "the stand-in does not know this element")
		}
	}
	for name := range n.attrs {
		r.fail(n, "the stand-in does not know the attribute %s", name)
	}
	if len(n.children) > 0 && strings.TrimSpace(n.text) != "" {
		r.fail(n, "text %q beside elements", strings.TrimSpace(n.text))
	}
}

// text returns an element's text, "" where it is missing.
func (r *reader) text(n *node, name string) string {
	c := r.child(n, name)
	if c == nil {
		return ""
	}
	r.done(c)
	for _, below := range c.children {
		r.fail(below, "an element where text should be")
	}
	return c.text
}

// boolean returns an element's truth value, def where it is missing.
func (r *reader) boolean(n *node, name string, def bool) bool {
	c := r.child(n, name)
	if c == nil {
		return def
	}
	r.done(c)
	switch strings.TrimSpace(c.text) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	r.fail(c, "%q is neither true nor false", c.text)
	return def
}

// number returns an element's number, 0 where it is missing.
func (r *reader) number(n *node, name string) int {
	c := r.child(n, name)
	if c == nil {
		return 0
	}
	r.done(c)
	v, err := strconv.Atoi(strings.TrimSpace(c.text))
	if err != nil || v < 0 {
		r.fail(c, "%q is not a number", c.text)
	}
	return v
}

// choice returns an element's text, which must be one of those given.
func (r *reader) choice(n *node, name string, allowed ...string) string {
	c := r.child(n, name)
	if c == nil {
		return ""
	}
	r.done(c)
	for _, a := range allowed {
		if c.text == a {
			return a
		}
	}
	r.fail(c, "%q is none of %s", c.text, strings.Join(allowed, ", "))
	return ""
}

// sortByOrder sorts list items by their Order, which must be 1, 2, 3 and so on.
func sortByOrder[T any](r *reader, n *node, items []T, order func(T) int) {
	sort.SliceStable(items, func(i, j int) bool { return order(items[i]) < order(items[j]) })
	for i, item := range items {
		if order(item) != i+1 {
			r.fail(n, "the Order numbers are not 1 to %d", len(items))
			return
		}
	}
}
