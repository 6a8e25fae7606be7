package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// listName is where the list is, as seen from the top of the checkout.
const listName = "builder/internal/wine/wintest/excluded.txt"

//go:embed excluded.txt
var excluded string

// exclusion is one line of the list: a package as seen from the module's root,
// with "/..." for all below it too; a test or subtest of it unless all is meant; and the reason.
type exclusion struct {
	pkg, test, why string
	skip           bool // not even tried, since it would hang or break others
}

type exclusionList []exclusion

// exclusions reads the list: lines "PACKAGE [TEST]: REASON". An exclamation
// mark before the test's name says that it is never tried.
func exclusions(text string) (exclusionList, error) {
	var list exclusionList
	for n, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, why, ok := strings.Cut(line, ": ")
		fields := strings.Fields(what)
		if !ok || strings.TrimSpace(why) == "" || len(fields) == 0 || len(fields) > 2 {
			return nil, fmt.Errorf("%s:%d: want PACKAGE [TEST]: REASON", listName, n+1)
		}
		e := exclusion{pkg: fields[0], why: strings.TrimSpace(why)}
		if len(fields) == 2 {
			e.test, e.skip = strings.CutPrefix(fields[1], "!")
		}
		list = append(list, e)
	}
	return list, nil
}

func (e exclusion) String() string { return strings.TrimSpace(e.pkg+" "+e.test) + ": " + e.why }

// whole says whether a whole package is left out.
func (l exclusionList) whole(pkg string) bool {
	for _, e := range l {
		base, below := strings.CutSuffix(e.pkg, "/...")
		if e.test == "" && (pkg == base || below && strings.HasPrefix(pkg, base+"/")) {
			return true
		}
	}
	return false
}

// tests returns the tests of a package that are left out.
func (l exclusionList) tests(pkg string) exclusionList {
	var of exclusionList
	for _, e := range l {
		if e.test != "" && e.pkg == pkg {
			of = append(of, e)
		}
	}
	return of
}

// pattern is the regular expression of these tests' names, for -test.skip and
// -test.run; empty if there are none.
func (l exclusionList) pattern() string {
	names := make([]string, len(l))
	for i, e := range l {
		names[i] = "^" + strings.ReplaceAll(regexp.QuoteMeta(e.test), "/", "$/^") + "$"
	}
	return strings.Join(names, "|")
}
