package answer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Parse reads an answer file. What the stand-in does not know or Windows Setup
// would stop at is an *Error; several are joined.
func Parse(data []byte) (*Answer, error) {
	root, err := parseTree(data)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	a := &Answer{EnableLUA: true, Locale: map[string]string{}, Settings: map[string]string{}}
	if root.name != "unattend" {
		r.fail(root, "the root element is not unattend")
		return nil, errors.Join(r.errs...)
	}
	seen := map[string]bool{}
	for _, settings := range root.children {
		r.settings(settings, a, seen)
	}
	r.check(a)
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return a, nil
}

// settings reads one pass.
func (r *reader) settings(n *node, a *Answer, seen map[string]bool) {
	if n.name != "settings" {
		r.fail(n, "the stand-in does not know this element")
		return
	}
	pass := n.attrs["pass"]
	delete(n.attrs, "pass")
	if seen[pass] {
		r.fail(n, "the pass is there twice")
	}
	seen[pass] = true
	known, ok := passes()[pass]
	if !ok {
		r.fail(n, "the stand-in does not know the pass %q", pass)
		return
	}
	for _, c := range n.children {
		if c.name != "component" {
			r.fail(c, "the stand-in does not know this element")
			continue
		}
		c.used = true
		name := c.attrs["name"]
		read, ok := known[name]
		if !ok {
			r.fail(c, "the stand-in does not know the component %q in the pass %s", name, pass)
			continue
		}
		if seen[pass+"/"+name] {
			r.fail(c, "the component is there twice")
		}
		seen[pass+"/"+name] = true
		for attr, want := range map[string]string{
			"name": name, "processorArchitecture": "amd64", "publicKeyToken": "31bf3856ad364e35",
			"language": "neutral", "versionScope": "nonSxS",
		} {
			if c.attrs[attr] != want {
				r.fail(c, "attribute %s is %q, not %q", attr, c.attrs[attr], want)
			}
			delete(c.attrs, attr)
		}
		read(r, c, a)
		r.done(c)
	}
	r.done(n)
}

// check refuses what Setup would stop at although it knows every element.
func (r *reader) check(a *Answer) {
	at := func(path string) *node { return &node{path: path} }
	if !a.AcceptEULA {
		r.fail(at("windowsPE/Microsoft-Windows-Setup/UserData/AcceptEula"), "the licence is not accepted: Setup would ask")
	}
	if len(a.Disks) == 0 {
		r.fail(at("windowsPE/Microsoft-Windows-Setup/DiskConfiguration"), "is missing: Setup would ask where to install")
	}
	if (a.Image.Name == "") == (a.Image.Index == 0) {
		r.fail(at("windowsPE/Microsoft-Windows-Setup/ImageInstall"), "exactly one of /IMAGE/NAME and /IMAGE/INDEX must be given: Setup would ask")
	}
	if a.AutoLogon.Enabled {
		known := strings.EqualFold(a.AutoLogon.User, "Administrator") && a.Administrator != nil
		for _, account := range a.Accounts {
			known = known || strings.EqualFold(account.Name, a.AutoLogon.User)
		}
		if !known {
			r.fail(at("oobeSystem/Microsoft-Windows-Shell-Setup/AutoLogon"), "no account %q is made", a.AutoLogon.User)
		}
	}
	if len(a.FirstLogon) > 0 && !a.AutoLogon.Enabled {
		r.fail(at("oobeSystem/Microsoft-Windows-Shell-Setup/FirstLogonCommands"), "nobody logs on: AutoLogon is not enabled")
	}
}

// password reads a password element. Not in plain text, it is base64 of the
// UTF-16LE of the password with the element's own name behind it.
func (r *reader) password(n *node) Password {
	value, plain := r.text(n, "Value"), r.boolean(n, "PlainText", false)
	r.done(n)
	if plain {
		return Password{value}
	}
	clear, err := decodePassword(value, n.name)
	if err != nil {
		r.fail(n, "%v", err)
	}
	return Password{clear}
}

func decodePassword(value, suffix string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil || len(raw)%2 != 0 {
		return "", errors.New("the value is not base64 of UTF-16")
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	clear, ok := strings.CutSuffix(string(utf16.Decode(units)), suffix)
	if !ok {
		return "", fmt.Errorf("the decoded value does not end in %q", suffix)
	}
	return clear, nil
}
