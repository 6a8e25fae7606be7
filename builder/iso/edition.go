package iso

import (
	"fmt"
	"strings"
)

// Edition is one image in a WIM.
type Edition struct {
	Index            int      `json:"index"`                 // from 1; what Setup takes as /IMAGE/INDEX
	Name             string   `json:"name"`                  // "Windows Server 2022 SERVERSTANDARDCORE"; what Setup takes as /IMAGE/NAME
	DisplayName      string   `json:"displayName,omitempty"` // what Setup shows to people
	EditionID        string   `json:"editionID"`             // "ServerStandardEval"
	InstallationType string   `json:"installationType"`      // "Server" has a desktop, "Server Core" has none, "Client" is no server
	Build            int      `json:"build"`                 // 20348
	SPBuild          int      `json:"spBuild"`               // the update level: the part after the build in a full version
	Arch             string   `json:"arch"`                  // as Go names it: "amd64"; empty where the WIM doesn't tell
	Languages        []string `json:"languages,omitempty"`   // "en-US"
	Bytes            int64    `json:"bytes"`                 // of its files, uncompressed
}

// The kinds of installation, as the flag --edition names them.
const (
	Core    = "core"
	Desktop = "desktop"
)

// Release is "2019", "2022" or "2025", by the build number, and "" for any
// other Windows. Clients share build numbers with servers and have none.
func (e Edition) Release() string {
	if e.Kind() == "" {
		return ""
	}
	switch e.Build {
	case 17763:
		return "2019"
	case 20348:
		return "2022"
	case 26100:
		return "2025"
	}
	return ""
}

// Kind is Core or Desktop, and "" for what is no server. Where the WIM tells
// no installation type, the end of the name decides.
func (e Edition) Kind() string {
	name := strings.ToUpper(e.Name)
	switch {
	case strings.EqualFold(e.InstallationType, "Server Core"):
		return Core
	case strings.EqualFold(e.InstallationType, "Server"):
		return Desktop
	case e.InstallationType != "" || !strings.Contains(name, " SERVER"):
		return ""
	case strings.HasSuffix(name, "CORE"):
		return Core
	case strings.HasSuffix(name, "SERVERSTANDARD"), strings.HasSuffix(name, "SERVERDATACENTER"):
		return Desktop
	}
	return ""
}

// Evaluation says whether it is an evaluation, which ends after 180 days and
// takes no product key at installation.
func (e Edition) Evaluation() bool {
	return strings.Contains(strings.ToLower(e.EditionID), "eval")
}

// Version is the full version of Windows, such as "10.0.20348.587".
func (e Edition) Version() string { return fmt.Sprintf("10.0.%d.%d", e.Build, e.SPBuild) }

// rank orders the editions of one kind by preference: Datacenter, whose
// containers have no limit, before Standard. Others (Azure's, Essentials) are
// never chosen: ok is false.
func (e Edition) rank() (rank int, ok bool) {
	id := strings.ToLower(e.EditionID)
	if id == "" { // the name has the same words
		id = strings.ToLower(e.Name)
	}
	switch {
	case strings.Contains(id, "serverdatacenter"):
		return 0, true
	case strings.Contains(id, "serverstandard"):
		return 1, true
	}
	return 0, false
}

// String is one line for people.
func (e Edition) String() string {
	kind := e.Kind()
	if kind == "" {
		kind = "no server"
	}
	arch := e.Arch
	if arch == "" {
		arch = "processor not told"
	}
	return fmt.Sprintf("%d %q (%s, build %d, %s)", e.Index, e.Name, kind, e.Build, arch)
}
