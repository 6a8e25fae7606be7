package media

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// library is a shared library, or the loader, that PowerShell needs.
type library struct {
	path string // on this machine
	name string // its path in the guest, without the leading slash
}

// libraries looks up what .NET is linked against among this machine's own
// libraries: the C and C++ run time, and OpenSSL, which Add-Type wants.
func libraries() ([]library, error) {
	const guest = "lib/x86_64-linux-gnu/"
	var libs []library
	for _, want := range []struct {
		name     string
		optional bool
	}{
		{name: "lib64/ld-linux-x86-64.so.2"},
		{name: guest + "libc.so.6"}, {name: guest + "libm.so.6"}, {name: guest + "libdl.so.2"},
		{name: guest + "libpthread.so.0"}, {name: guest + "librt.so.1"},
		{name: guest + "libgcc_s.so.1"}, {name: guest + "libstdc++.so.6"},
		{name: guest + "libssl.so.3", optional: true}, {name: guest + "libcrypto.so.3", optional: true},
	} {
		found := ""
		for _, path := range []string{"/" + want.name, "/usr/" + want.name, "/lib64/" + filepath.Base(want.name), "/usr/lib64/" + filepath.Base(want.name)} {
			if _, err := os.Stat(path); err == nil {
				found = path
				break
			}
		}
		switch {
		case found != "":
			libs = append(libs, library{found, want.name})
		case !want.optional:
			return nil, fmt.Errorf("PowerShell needs %s, which this machine lacks", filepath.Base(want.name))
		}
	}
	return libs, nil
}

// findPowerShell unpacks PowerShell, if it is an archive, and finds PowerShell's folder and version.
func (in *inputs) findPowerShell(ctx context.Context, _, _ string) error {
	if in.ps == "" {
		return nil
	}
	info, err := os.Stat(in.ps)
	if err != nil {
		return fmt.Errorf("looking for PowerShell: %w", err)
	}
	dir := in.ps
	if !info.IsDir() {
		dir = filepath.Join(in.scratch, "powershell")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder for PowerShell: %w", err)
		}
		if _, err := run(ctx, "", "tar", "-xf", in.ps, "-C", dir); err != nil {
			return fmt.Errorf("unpacking PowerShell: %w", err)
		}
	}
	root, err := powershellRoot(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", in.ps, err)
	}
	in.ps = root
	in.psVersion, err = powershellVersion(root)
	return err
}

// powershellRoot returns the folder, dir itself or its only one, that holds
// PowerShell: either the official build (pwsh and pwsh.dll side by side) or a
// pair of folders app (with pwsh.dll) and dotnet (with the host of that name).
func powershellRoot(dir string) (string, error) {
	below, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return "", err
	}
	for _, root := range append([]string{dir}, below...) {
		for _, dll := range []string{"pwsh.dll", "app/pwsh.dll"} {
			if _, err := os.Stat(filepath.Join(root, dll)); err == nil {
				return root, nil
			}
		}
	}
	return "", errors.New("holds no PowerShell for Linux (pwsh.dll)")
}

var psVersion = regexp.MustCompile(`"pwsh/([0-9]+\.[0-9]+\.[0-9]+)`)

// powershellVersion reads the version from pwsh.deps.json.
func powershellVersion(root string) (string, error) {
	for _, name := range []string{"pwsh.deps.json", "app/pwsh.deps.json"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		if m := psVersion.FindSubmatch(data); m != nil {
			return string(m[1]), nil
		}
	}
	return "", fmt.Errorf("%s: pwsh.deps.json names no version", root)
}

// unwanted says whether a file of PowerShell's folder stays off the medium.
func unwanted(rel string) bool {
	for _, part := range []string{"app/Modules/Pester/", "Modules/Pester/", "libmscordbi.so", "libmscordaccore.so", "libcoreclrtraceptprovider.so"} {
		if strings.Contains(rel, part) {
			return true
		}
	}
	return false
}

// prepareWindows lets Build.ps1 make on this machine what the first start in
// the guest would have to make slowly, and returns the files.
func (in *inputs) prepareWindows(ctx context.Context, work string) ([]string, error) {
	out := filepath.Join(work, "windows")
	if err := os.Mkdir(out, 0o755); err != nil {
		return nil, err
	}
	argv := []string{filepath.Join(in.ps, "pwsh")}
	if _, err := os.Stat(filepath.Join(in.ps, "app", "pwsh.dll")); err == nil {
		argv = []string{filepath.Join(in.ps, "dotnet", "dotnet"), filepath.Join(in.ps, "app", "pwsh.dll")}
	}
	argv = append([]string{"env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "POWERSHELL_TELEMETRY_OPTOUT=1",
		"DOTNET_ROOT=" + filepath.Join(in.ps, "dotnet")}, argv...)
	argv = append(argv, "-NoProfile", "-NonInteractive", "-File", filepath.Join(in.source, "windows", "Build.ps1"),
		"-OutFolder", out, "-Release", in.release.name)
	if _, err := run(ctx, work, argv...); err != nil {
		return nil, err
	}
	made, err := filepath.Glob(filepath.Join(out, "*"))
	sort.Strings(made)
	return made, err
}
