package main

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wbox-dev/wbox/scripts/standin/internal/guestos"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
)

// Where the medium put PowerShell and the simulated Windows.
const (
	powershellDir = "/opt/powershell"
	hostScript    = "/wbox/windows/Host.ps1"
)

// startPowerShell starts the one PowerShell of this boot, which warms up while
// the rest starts. nil means that the medium has none.
func startPowerShell(ctx context.Context, console *guestos.Console, call func(string, []string) pshost.Result) (*pshost.Host, error) {
	argv := powershellCommand()
	if _, err := os.Stat(hostScript); argv == nil || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], "-NoLogo", "-NoProfile", "-NonInteractive", "-File", hostScript)...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"HOME=/root", "PATH=/bin", "TMPDIR=/tmp", "LD_LIBRARY_PATH=/lib/x86_64-linux-gnu",
		"DOTNET_ROOT=" + filepath.Join(powershellDir, "dotnet"), "DOTNET_MULTILEVEL_LOOKUP=0",
		"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "DOTNET_CLI_TELEMETRY_OPTOUT=1",
		"POWERSHELL_TELEMETRY_OPTOUT=1", "POWERSHELL_UPDATECHECK=Off",
		// Under software emulation compiling is dear, and nothing runs long enough
		// to earn it: no profiles, and no second compilation in the first minute
		// (hexadecimal milliseconds). A larger youngest generation, fewer collections.
		"DOTNET_TieredPGO=0", "DOTNET_TC_CallCountingDelayMs=EA60", "DOTNET_GCgen0size=4000000",
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			console.Printf("powershell: %s", lines.Text())
		}
		console.Printf("powershell: ended: %v", cmd.Wait())
	}()
	host := pshost.New(stdout, stdin, call)
	go func() {
		<-host.Ready()
		console.Printf("powershell: ready")
	}()
	return host, nil
}

// powershellCommand returns what starts PowerShell: .NET's host with pwsh.dll,
// or the official build's own program.
func powershellCommand() []string {
	dll := filepath.Join(powershellDir, "app", "pwsh.dll")
	if _, err := os.Stat(dll); err == nil {
		return []string{filepath.Join(powershellDir, "dotnet", "dotnet"), dll}
	}
	program := filepath.Join(powershellDir, "pwsh")
	if _, err := os.Stat(program); err == nil {
		return []string{program}
	}
	return nil
}
