package answerfile

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Limits of Windows, in UTF-16 code units, which is how Windows counts.
const (
	maxAccount      = 20   // SAM account names
	maxPassword     = 127  // LocalAccount/Password in an answer file
	maxComputerName = 15   // NetBIOS
	maxOrganization = 63   // UserData/Organization
	maxText         = 255  // image names and time zones, ours: generous
	maxCommandLine  = 1024 // FirstLogonCommands/SynchronousCommand/CommandLine
	maxCommands     = 100
)

// accountForbidden are the characters that a Windows account cannot have.
const accountForbidden = `"/\[]:;|=,+*?<>@`

// builtInAccounts exist on every Windows or are names of the system itself,
// in lower case: an answer file cannot create them.
var builtInAccounts = map[string]bool{
	"administrator": true, "guest": true, "defaultaccount": true, "wdagutilityaccount": true,
	"system": true, "local service": true, "network service": true, "none": true,
}

var (
	languageTag  = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
	computerName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
	onlyDigits   = regexp.MustCompile(`^[0-9]+$`)
	productKey   = regexp.MustCompile(`^[A-Z0-9]{5}(-[A-Z0-9]{5}){4}$`)
)

// problems collects everything that is wrong, so that it is reported at once.
type problems []error

func (ps *problems) add(field, value, why, fix string) {
	*ps = append(*ps, &fault.Problem{Class: fault.Usage, Field: field, Value: value, Why: why, Fix: fix})
}

// text checks what every value must meet; shown is what an error may say of it.
func (ps *problems) text(field, value, shown string, limit int) {
	switch {
	case value == "":
		ps.add(field, "", "it is empty", "give one")
	case !printable(value):
		ps.add(field, shown, "it holds a control character or is not valid text", "leave that character out")
	case len(utf16.Encode([]rune(value))) > limit:
		ps.add(field, shown, "it is too long for Windows", "shorten it")
	case value != strings.TrimSpace(value):
		ps.add(field, shown, "it begins or ends with a space, which Windows Setup may drop", "leave the space out")
	}
}

// validate checks values after withDefaults.
func validate(p Params) error {
	var ps problems
	if err := validRelease(p.Release); err != nil {
		ps = append(ps, err)
	}
	ps.text("image name", p.ImageName, quote(p.ImageName), maxText)
	ps.text("time zone", p.TimeZone, quote(p.TimeZone), maxText)
	ps.text("organization", p.Organization, quote(p.Organization), maxOrganization)
	ps.text("password", p.Password, "", maxPassword)
	for _, l := range []struct{ field, value string }{{"UI language", p.UILanguage}, {"locale", p.Locale}} {
		if !languageTag.MatchString(l.value) {
			ps.add(l.field, quote(l.value), "it is not a language tag", "use one such as en-US")
		}
	}
	ps.account(p.Account)
	ps.computerName(p.ComputerName)
	if p.ProductKey != "" && !productKey.MatchString(p.ProductKey) {
		ps.add("product key", "", "it is not five groups of five capital letters and digits", "leave it out for evaluation media")
	}
	if len(p.Commands) > maxCommands {
		ps.add("first logon commands", "", "there are too many", "put them into one script")
	}
	for _, line := range p.Commands {
		ps.text("first logon command", line, quote(line), maxCommandLine)
	}
	return errors.Join(ps...)
}

func (ps *problems) account(name string) {
	const field = "account"
	before := len(*ps)
	ps.text(field, name, quote(name), maxAccount)
	switch {
	case len(*ps) > before:
	case strings.ContainsAny(name, accountForbidden):
		ps.add(field, quote(name), "it holds one of "+accountForbidden, "leave that character out")
	case strings.HasSuffix(name, "."):
		ps.add(field, quote(name), "it ends with a dot", "leave the dot out")
	case builtInAccounts[strings.ToLower(name)]:
		ps.add(field, quote(name), "Windows has this account by itself", "choose another name")
	}
}

func (ps *problems) computerName(name string) {
	switch {
	case name == "*":
	case !computerName.MatchString(name), onlyDigits.MatchString(name), len(name) > maxComputerName:
		ps.add("computer name", quote(name), "it is not 1 to 15 letters, digits and inner '-', with a letter among them", "use * to let Windows make one up")
	}
}

// printable says whether s is valid text without control characters and
// without what XML 1.0 cannot carry.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

// quote shows a value in an error: quoted, and cut where it is long.
func quote(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
