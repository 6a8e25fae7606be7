package windows_test

import (
	"crypto/sha1" //nolint:gosec // Windows names certificates by it
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
)

// thumbprintOf reads a PFX file as the agent does.
func thumbprintOf(path, password string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, cert, err := pkcs12.Decode(data, password)
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(cert.Raw) //nolint:gosec // Windows names certificates by it
	return strings.ToUpper(hex.EncodeToString(sum[:])), nil
}

// TestTheHostIsLikePowerShell checks what scripts see of powershell.exe and
// Windows, not our guest scripts.
func TestTheHostIsLikePowerShell(t *testing.T) {
	w := newWorld(t)
	h := w.start()
	w.write(filepath.Join(w.c, "s.ps1"), "param($A, [switch]$B)\n\"$A $B\"\nexit 7\n")
	w.write(filepath.Join(w.c, "log.txt"), "one\r\ntwo\r\n")
	for _, c := range []struct {
		name, script  string
		exit          int
		out, err      string // exactly; err may be a part
		errIsContains bool
	}{
		{name: "output", script: "'a'; Write-Host b; [Console]::Out.Write('c')", out: "a\r\nb\r\nc"},
		{name: "exit code", script: "exit 3010", exit: 3010},
		{name: "negative exit code", script: "exit -5", exit: -5},
		{name: "exit code of a script", script: "& C:\\s.ps1 x -B; exit $LASTEXITCODE", exit: 7, out: "x True\r\n"},
		{name: "throw", script: "throw 'bad'", exit: 1, err: "bad", errIsContains: true},
		{name: "error goes on", script: "Write-Error bad; 'on'", out: "on\r\n", err: "bad", errIsContains: true},
		{name: "console error", script: "[Console]::Error.Write('e'); exit 21", exit: 21, err: "e"},
		{name: "no line is folded", script: "'x' * 5000", out: strings.Repeat("x", 5000) + "\r\n"},
		{name: "letters outside ASCII", script: "'\u00fc\u20ac'", out: "\u00fc\u20ac\r\n"},
		{name: "no variable of another script", script: "$global:x", out: ""},
		{name: "unknown command", script: "Get-Nonsense", exit: 1, err: "Get-Nonsense", errIsContains: true},
		{name: "unknown parameter", script: "Get-Volume -Colour red", exit: 1, err: "'Colour'", errIsContains: true},
		{name: "parameters of two sets", script: "Get-Volume -DriveLetter C -FileSystemLabel x", exit: 1, err: "Parameter set", errIsContains: true},
		{name: "a value that is not in the list", script: "New-NetFirewallRule -DisplayName x -Direction Up", exit: 1, err: "Inbound", errIsContains: true},
		{name: "a program of the agent", script: "hostname.exe; exit $LASTEXITCODE", out: "WIN-TEST\r\n"},
		{name: "a program by Start-Process", script: "(Start-Process sc.exe -ArgumentList 'query nothing' -Wait -PassThru -NoNewWindow -RedirectStandardOutput C:\\o -RedirectStandardError C:\\e).ExitCode; Get-Content C:\\o -TotalCount 1", out: "1060\r\n[SC] OpenService FAILED 1060:\r\n"},
		{name: "no program of Linux", script: "ls.exe", exit: 1, err: "ls.exe", errIsContains: true},
		{name: "the registry", script: "New-Item HKLM:\\SOFTWARE\\a\\b -Force | Out-Null; New-ItemProperty HKLM:\\SOFTWARE\\a\\b -Name n -Value 5 -PropertyType DWord | Out-Null; (Get-ItemProperty HKLM:\\SOFTWARE\\a\\b).n; Test-Path HKLM:\\SOFTWARE\\A\\B\\c; (Get-ChildItem HKLM:\\SOFTWARE\\a).Name", out: "5\r\nFalse\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\a\\b\r\n"},
		{name: "a key for SYSTEM", script: "Get-Item 'HKLM:\\SECURITY\\Policy\\Secrets\\DefaultPassword' -ErrorAction Stop", exit: 1, err: "does not exist", errIsContains: true},
		{name: "boot time", script: "(Get-CimInstance Win32_OperatingSystem).LastBootUpTime.ToUniversalTime().ToString('o')", out: "2023-11-14T22:13:20.0000000Z\r\n"},
		{name: "the seed by its label", script: "(Get-CimInstance Win32_LogicalDisk -Filter \"VolumeName='WBOXSEED'\").DeviceID", out: "D:\r\n"},
		{name: "reading a log", script: "# wbox: read C:\\log.txt\n[Console]::OpenStandardOutput()", out: "one\r\ntwo\r\n"},
		{name: "reading nothing", script: "# wbox: read C:\\none.txt\n", out: ""},
		{name: "reading out of C:", script: "# wbox: read C:\\..\\stat\n", out: ""},
		{name: "standard output is not the protocol", script: "$b = [Text.Encoding]::ASCII.GetBytes('x'); $s = [Console]::OpenStandardOutput(); $s.Write($b, 0, 1); $s.Flush(); 'y'", out: "y\r\n"},
		{name: "no prompt", script: "Read-Host", exit: 1, err: "NonInteractive", errIsContains: true},
		{name: "firewall", script: "$null = New-NetFirewallRule -Name n -DisplayName n -Direction Inbound -Action Allow -Protocol TCP -LocalPort 5 -Profile Any -Enabled True; $r = Get-NetFirewallRule -Name n; $f = Get-NetFirewallPortFilter -AssociatedNetFirewallRule $r; \"$($r.Profile) $($r.Enabled) $($f.Protocol) $($f.LocalPort)\"", out: "Any True TCP 5\r\n"},
		{name: "Hyper-V needs more than this processor", script: "(Install-WindowsFeature Hyper-V -ErrorAction SilentlyContinue).ExitCode", out: "Failed\r\n"},
		{name: "a feature that is not there", script: "@(Get-WindowsFeature PowerShell-ISE).Count", out: "0\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := h.command(c.script)
			if r.exit != c.exit || r.stdout != c.out {
				t.Errorf("exit %d, want %d; stdout %q, want %q; stderr %q", r.exit, c.exit, r.stdout, c.out, r.stderr)
			}
			if (c.errIsContains && !strings.Contains(r.stderr, c.err)) || (!c.errIsContains && r.stderr != c.err) {
				t.Errorf("stderr %q, want %q", r.stderr, c.err)
			}
		})
	}
	if r := h.request(pshost.Request{Kind: "file", User: "SYSTEM", Text: `C:\s.ps1`, Args: []string{"-A", "a b"}}); r.exit != 7 || r.stdout != "a b False\r\n" {
		t.Errorf("a file: %+v", r)
	}
	if r := h.request(pshost.Request{Kind: "command", User: "SYSTEM", Text: "Test-Path 'HKLM:\\SECURITY\\Policy\\Secrets\\DefaultPassword'"}); r.stdout != "True\r\n" {
		t.Errorf("SYSTEM does not see the LSA's secrets: %+v", r)
	}
	if r := h.request(pshost.Request{Kind: "program", User: "wbox", Program: "powercfg.exe", Args: []string{"/getactivescheme"}}); r.exit != 0 || !strings.Contains(r.stdout, "Balanced") {
		t.Errorf("a program: %+v", r)
	}
	if r := h.request(pshost.Request{Kind: "program", User: "wbox", Program: "nonsense.exe"}); r.exit != 9009 {
		t.Errorf("a program that is not there: %+v", r)
	}
}

// TestRequestsRunSideBySide: a script that waits holds nobody up.
func TestRequestsRunSideBySide(t *testing.T) {
	w := newWorld(t)
	h := w.start()
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		h.command("Start-Sleep -Seconds 8; 'slow'")
	}()
	begin := time.Now()
	if r := h.command("'quick'"); r.stdout != "quick\r\n" {
		t.Errorf("%+v", r)
	}
	select {
	case <-slow:
		t.Errorf("the slow one was first, after %v", time.Since(begin))
	default:
	}
	<-slow
}
