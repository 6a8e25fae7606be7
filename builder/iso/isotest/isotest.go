// Package isotest makes installation media for tests: FakeWindowsISO without
// any tool and within milliseconds, WindowsMedia with the tools that make real
// ones. What is written here follows the standards' text on its own, so that
// it and package iso check each other. It must be imported by tests only.
package isotest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/wbox-dev/wbox/builder/iso"
)

// Label is a volume label in the style of Microsoft's server media.
const Label = "SSS_X64FREE_EN-US_DV9"

// Editions gives the four editions of an evaluation medium of Windows Server
// 2019, 2022 or 2025, in Microsoft's order.
func Editions(release string) []iso.Edition {
	build := map[string]int{"2019": 17763, "2022": 20348, "2025": 26100}[release]
	var out []iso.Edition
	for _, e := range []struct{ name, id, kind, display string }{
		{"SERVERSTANDARDCORE", "ServerStandardEval", "Server Core", "Standard Evaluation"},
		{"SERVERSTANDARD", "ServerStandardEval", "Server", "Standard Evaluation (Desktop Experience)"},
		{"SERVERDATACENTERCORE", "ServerDatacenterEval", "Server Core", "Datacenter Evaluation"},
		{"SERVERDATACENTER", "ServerDatacenterEval", "Server", "Datacenter Evaluation (Desktop Experience)"},
	} {
		product := "Windows Server " + release + " "
		out = append(out, iso.Edition{
			Index: len(out) + 1, Name: product + e.name, DisplayName: product + e.display, EditionID: e.id,
			InstallationType: e.kind, Build: build, SPBuild: 587, Arch: "amd64", Languages: []string{"en-US"}, Bytes: 3,
		})
	}
	return out
}

// FakeWindowsISO writes an ISO of the shape of Microsoft's into dir: the files
// in UDF, the other side empty, a WIM that is a header and XML only. standIn
// may be nil. It gives the image's path.
func FakeWindowsISO(t testing.TB, dir string, editions []iso.Edition, standIn *iso.StandIn) string {
	t.Helper()
	path := filepath.Join(dir, "windows.iso")
	if err := WriteFake(path, editions, standIn); err != nil {
		t.Fatal(err)
	}
	return path
}

// WriteFake is FakeWindowsISO for a caller that has no test at hand.
func WriteFake(path string, editions []iso.Edition, standIn *iso.StandIn) error {
	files := []File{
		{Path: "setup.exe", Data: []byte("MZ")},
		{Path: "efi/boot/bootx64.efi", Data: []byte("MZ")},
		{Path: "sources/install.wim", Data: WIM(editions)},
	}
	if standIn != nil {
		data, err := json.Marshal(standIn)
		if err != nil {
			return err
		}
		files = append(files, File{Path: iso.StandInFile, Data: data})
	}
	return os.WriteFile(path, UDF{Label: Label, Files: files}.Bytes(), 0o644)
}
