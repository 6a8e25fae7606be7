// Package answerfile renders Autounattend.xml, the file that lets Windows
// Setup install without questions. The text lives in templates/answer; this
// package checks the values, escapes them and fills them in. It must not
// import spec, stage or a stage, nor know how the file reaches the guest.
package answerfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/templates"
)

// rendererVersion is counted up when the same template and values would give
// another file, so that cached installs of the older form are not used.
const rendererVersion = 1

// partsFile holds the passes that all releases share.
const partsFile = "answer/parts.xml.tmpl"

// Params are the values of one answer file. It is for UEFI machines: the disk
// gets a GUID partition table.
type Params struct {
	Release      string   // Windows Server release: one of Releases()
	ImageName    string   // the NAME of an image in install.wim, exactly
	UILanguage   string   // language tag of the installed Windows; default "en-US"
	Locale       string   // language tag for formats and keyboard; default UILanguage
	TimeZone     string   // a Windows time zone id; default "UTC"
	ComputerName string   // at most 15 letters, digits and '-'; default "*" (Windows makes one up)
	Account      string   // the account of the bake, made a member of Administrators
	Password     string   // its password, and that of the built-in Administrator
	Organization string   // default "wbox"
	ProductKey   string   // five groups of five; empty for evaluation media
	Commands     []string // command lines at the first logon, in order; default: EnableWinRM alone
}

// EnableWinRM is the command line that finds the seed volume by its label and
// opens the way in: it runs the guest script 10-enable-winrm in set mode.
const EnableWinRM = `powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command "` +
	`$ErrorActionPreference = 'Stop'; ` +
	`$seed = Get-CimInstance -ClassName Win32_LogicalDisk -Filter 'VolumeName=''WBOXSEED'''; ` +
	`& ($seed.DeviceID + '\wbox\Invoke-WboxScript.ps1') -Name 10-enable-winrm -Mode set; ` +
	`exit $LASTEXITCODE"`

// Releases returns the Windows Server releases that have an answer file, the
// oldest first.
func Releases() []string { return []string{"2019", "2022", "2025"} }

// Render returns the answer file for p as UTF-8. Values that Windows would
// refuse are reported all together, each as a *fault.Problem of class
// fault.Usage; a password is never part of an error.
func Render(p Params) ([]byte, error) {
	p = withDefaults(p)
	if err := validate(p); err != nil {
		return nil, err
	}
	t, err := template.New("").
		Funcs(template.FuncMap{"xml": escape, "order": func(i int) string { return strconv.Itoa(i + 1) }}).
		ParseFS(templates.FS, partsFile, releaseFile(p.Release))
	if err != nil {
		return nil, fmt.Errorf("reading the answer file's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, p.Release+".xml.tmpl", p); err != nil {
		return nil, fmt.Errorf("rendering the answer file: %w", err)
	}
	return out.Bytes(), nil
}

// Digest returns the SHA-256, in hex, of everything but the values that
// decides the answer file of a release: its templates, the default command
// and the renderer's version. It is part of a stage's fingerprint.
func Digest(release string) (string, error) {
	if err := validRelease(release); err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "renderer %d\n%s\n", rendererVersion, EnableWinRM)
	for _, name := range []string{partsFile, releaseFile(release)} {
		data, err := fs.ReadFile(templates.FS, name)
		if err != nil {
			return "", fmt.Errorf("reading the answer file's template: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(data)) // lengths keep the parts apart
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func releaseFile(release string) string { return "answer/" + release + ".xml.tmpl" }

func validRelease(release string) error {
	if slices.Contains(Releases(), release) {
		return nil
	}
	return &fault.Problem{Class: fault.Usage, Field: "--windows", Value: release,
		Why: "there is no answer file for this release", Fix: "choose one of " + strings.Join(Releases(), ", ")}
}

func withDefaults(p Params) Params {
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def(&p.UILanguage, "en-US")
	def(&p.Locale, p.UILanguage)
	def(&p.TimeZone, "UTC")
	def(&p.ComputerName, "*")
	def(&p.Organization, "wbox")
	if len(p.Commands) == 0 {
		p.Commands = []string{EnableWinRM}
	}
	return p
}

// escape makes s safe as an element's content. validate has refused what XML
// cannot carry, which EscapeText would silently replace.
func escape(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
