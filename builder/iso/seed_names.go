package iso

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the names on a seed.
const (
	maxLabel  = 16  // characters of a Joliet volume identifier
	maxJoliet = 64  // characters of a Joliet name
	maxPath   = 240 // characters of a path: Windows' 260 less a drive and some air
)

func checkLabel(label string) error {
	if label == "" || len(label) > maxLabel {
		return fmt.Errorf("the label %q must have 1 to %d characters", label, maxLabel)
	}
	for _, r := range label {
		if !isDCharacter(r) {
			return fmt.Errorf("the label %q may have only A-Z, 0-9 and _", label)
		}
	}
	return nil
}

// isDCharacter says whether ISO 9660 allows r in a name (ECMA-119 7.4.1).
func isDCharacter(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

// checkPath says what is wrong with a path for Windows or for Joliet.
func checkPath(p string) error {
	if !utf8.ValidString(p) {
		return errors.New("it isn't UTF-8")
	}
	if n := utf8.RuneCountInString(p); n > maxPath {
		return fmt.Errorf("the path has %d characters, more than %d", n, maxPath)
	}
	parts := strings.Split(p, "/")
	if len(parts) > maxDepth {
		return fmt.Errorf("it is more than %d folders deep", maxDepth)
	}
	for _, name := range parts {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

// checkName follows Microsoft's "Naming Files, Paths, and Namespaces"; the
// semicolon is Joliet's separator of versions.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has an empty name in it")
	case strings.HasSuffix(name, "."), strings.HasSuffix(name, " "):
		return fmt.Errorf("%q ends in a dot or a space, which Windows drops", name)
	case isDevice(name):
		return fmt.Errorf("%q is the name of a device on Windows", name)
	}
	n := 0
	for _, r := range name {
		n++
		switch {
		case r < ' ' || strings.ContainsRune(`<>:"/\|?*;`, r):
			return fmt.Errorf("%q has %q in it, which is not allowed in a name", name, r)
		case r > 0xffff:
			return fmt.Errorf("%q has %q in it, which Joliet's two bytes can't hold", name, r)
		}
	}
	if n > maxJoliet {
		return fmt.Errorf("%q has %d characters, Joliet holds %d", name, n, maxJoliet)
	}
	return nil
}

// isDevice knows the reserved names, which an extension doesn't free.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch base = strings.TrimRight(base, " "); base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	number, ok := strings.CutPrefix(base, "COM")
	if !ok {
		number, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.ContainsAny(number, "0123456789¹²³")
}

// fold gives the same string for names that Windows holds to be the same.
func fold(name string) string { return strings.Map(unicode.ToUpper, name) }

// shortName makes a name for the ISO 9660 side: up to 30 characters of A-Z,
// 0-9 and _, a file's with one dot. taken has the names of the folder so far.
func shortName(name string, folder bool, taken map[string]bool) string {
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && !folder {
		base, ext = name[:i], name[i+1:]
	}
	base, ext = dCharacters(base), dCharacters(ext)
	ext = ext[:min(len(ext), 8)]
	end := ""
	if !folder {
		end = "." + ext
	}
	for i := 0; ; i++ {
		number := ""
		if i > 0 {
			number = fmt.Sprintf("_%d", i)
		}
		room := 30 - len(ext) - len(number)
		short := base[:min(len(base), room)] + number + end
		if !taken[short] {
			taken[short] = true
			return short
		}
	}
}

func dCharacters(s string) string {
	return strings.Map(func(r rune) rune {
		if r = unicode.ToUpper(r); !isDCharacter(r) {
			return '_'
		}
		return r
	}, s)
}
