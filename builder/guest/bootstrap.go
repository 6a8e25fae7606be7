package guest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
)

// SeedLabel is the volume label of the CD that every guest of a bake gets.
const SeedLabel = "WBOXSEED"

// maxLine is the longest command line that a Conn takes, in characters.
const maxLine = 8000

// noSeed is the exit code of a bootstrap that does not find the seed volume.
const noSeed = 21

// request is the first line of a bootstrap, without "# wbox: ".
type request string

// bootstrap puts the request line before a script. Progress records would come
// as XML on standard error.
func (r request) bootstrap(script string) string {
	return "# wbox: " + string(r) + "\n$ProgressPreference = 'SilentlyContinue'\n" + script
}

func runRequest(name string, mode Mode) (request, string) {
	r := request(fmt.Sprintf("run %s %s", name, mode))
	return r, r.bootstrap(fmt.Sprintf(`$v = @(Get-CimInstance Win32_LogicalDisk -Filter "VolumeName='%s'") | Select-Object -First 1
if (-not $v) { [Console]::Error.WriteLine('there is no volume %s'); exit %d }
& ($v.DeviceID + '\wbox\Invoke-WboxScript.ps1') -Name '%s' -Mode %s
exit $LASTEXITCODE
`, SeedLabel, SeedLabel, noSeed, name, mode))
}

func bootTimeRequest() (request, string) {
	r := request("boot-time")
	return r, r.bootstrap(`$ErrorActionPreference = 'Stop'
(Get-CimInstance Win32_OperatingSystem).LastBootUpTime.ToUniversalTime().ToString('o')
`)
}

// readRequest reads the last limit bytes of a file that others may be writing.
// The path is printable ASCII: PowerShell takes some other quotes for its own.
func readRequest(path string, limit int64) (request, string) {
	r := request("read " + path)
	return r, r.bootstrap(fmt.Sprintf(`$ErrorActionPreference = 'Stop'
$p = '%s'
if (-not (Test-Path -LiteralPath $p)) { exit 0 }
$f = New-Object IO.FileStream $p, 'Open', 'Read', 'ReadWrite, Delete'
$n = $f.Length - %d
if ($n -gt 0) { [void]$f.Seek($n, 'Begin') }
$f.CopyTo([Console]::OpenStandardOutput())
`, strings.ReplaceAll(path, "'", "''"), limit))
}

// powershell returns the command line that runs a bootstrap.
func powershell(script string) (string, error) {
	units := utf16.Encode([]rune(script))
	wide := make([]byte, 0, 2*len(units))
	for _, u := range units {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	line := "powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -EncodedCommand " + base64.StdEncoding.EncodeToString(wide)
	if len(line) > maxLine {
		return "", fmt.Errorf("the command line has %d characters, at most %d are possible", len(line), maxLine)
	}
	return line, nil
}

var (
	scriptName = regexp.MustCompile(`^[0-9]{2}-[a-z][a-z0-9-]*$`)
	printable  = regexp.MustCompile(`^[ -~]+$`)
)
