package iso_test

import (
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

func TestSelect(t *testing.T) {
	all := append(append(isotest.Editions("2019"), isotest.Editions("2022")...), isotest.Editions("2025")...)
	for i := range all {
		all[i].Index = i + 1
	}
	for _, c := range []struct {
		name, release, kind string
		editions            []iso.Edition
		want                int
	}{
		{"datacenter before standard, core", "2022", iso.Core, isotest.Editions("2022"), 3},
		{"datacenter before standard, desktop", "2022", iso.Desktop, isotest.Editions("2022"), 4},
		{"standard where there is no other", "2025", iso.Core, isotest.Editions("2025")[:2], 1},
		{"by build: 2019", "2019", iso.Core, all, 3},
		{"by build: 2022", "2022", iso.Core, all, 7},
		{"by build: 2025", "2025", iso.Desktop, all, 12},
		{"volume media", "2022", iso.Core, []iso.Edition{
			{Index: 1, Name: "Windows Server 2022 SERVERSTANDARDCORE", EditionID: "ServerStandard", InstallationType: "Server Core", Build: 20348, Arch: "amd64"},
		}, 1},
		{"kind by the name alone", "2022", iso.Core, []iso.Edition{
			{Index: 1, Name: "Windows Server 2022 SERVERDATACENTER", Build: 20348, Arch: "amd64"},
			{Index: 2, Name: "Windows Server 2022 SERVERDATACENTERCORE", Build: 20348, Arch: "amd64"},
		}, 2},
		{"the first of two alike", "2022", iso.Core, []iso.Edition{
			{Index: 2, EditionID: "ServerDatacenter", InstallationType: "Server Core", Build: 20348, Arch: "amd64"},
			{Index: 1, EditionID: "ServerDatacenter", InstallationType: "Server Core", Build: 20348, Arch: "amd64"},
		}, 1},
		{"another processor is passed over", "2022", iso.Core, []iso.Edition{
			{Index: 1, EditionID: "ServerDatacenter", InstallationType: "Server Core", Build: 20348, Arch: "arm64"},
			{Index: 2, EditionID: "ServerStandard", InstallationType: "Server Core", Build: 20348, Arch: "amd64"},
		}, 2},
	} {
		e, err := iso.Media{Path: "x.iso", Editions: c.editions}.Select(c.release, c.kind)
		if err != nil || e.Index != c.want {
			t.Errorf("%s: index %d, %v; want %d", c.name, e.Index, err, c.want)
		}
	}
}

func TestSelectSaysWhatIsInside(t *testing.T) {
	client := iso.Edition{Index: 1, Name: "Windows 11 Pro", EditionID: "Professional", InstallationType: "Client", Build: 26100, Arch: "amd64"}
	azure := iso.Edition{Index: 1, Name: "Windows Server 2022 SERVERTURBINECORE", EditionID: "ServerTurbine", InstallationType: "Server Core", Build: 20348, Arch: "amd64"}
	arm := isotest.Editions("2025")[:1]
	arm[0].Arch = "arm64"
	for _, c := range []struct {
		name, release, kind string
		editions            []iso.Edition
		want                []string
	}{
		{"another release", "2025", iso.Core, isotest.Editions("2022"), []string{
			"no Windows Server 2025 core edition", `1 "Windows Server 2022 SERVERSTANDARDCORE" (core, build 20348, amd64)`, `4 "Windows Server 2022 SERVERDATACENTER" (desktop`,
			"--windows 2022 --edition core, --windows 2022 --edition desktop",
		}},
		{"another kind", "2022", iso.Desktop, isotest.Editions("2022")[:1], []string{"no Windows Server 2022 desktop edition", "(--windows 2022 --edition core)"}},
		{"a client", "2025", iso.Desktop, []iso.Edition{client}, []string{`"Windows 11 Pro" (no server, build 26100`, "give an ISO of Windows Server"}},
		{"azure", "2022", iso.Core, []iso.Edition{azure}, []string{"SERVERTURBINECORE", "give an ISO of Windows Server"}},
		{"arm64", "2025", iso.Core, arm, []string{"isn't for amd64", "build 26100, arm64", "give an ISO of Windows Server"}},
		{"nothing", "2022", iso.Core, nil, []string{"inside: none"}},
	} {
		_, err := iso.Media{Path: "x.iso", Editions: c.editions}.Select(c.release, c.kind)
		checkProblem(t, c.name, err, "x.iso", c.want...)
	}
}

// checkProblem wants a problem of class Input with --iso, path and words.
func checkProblem(t *testing.T, name string, err error, path string, words ...string) {
	t.Helper()
	problems := fault.All(err)
	if len(problems) != 1 || problems[0].Class != fault.Input || problems[0].Field != "--iso" || problems[0].Value != path || problems[0].Fix == "" {
		t.Errorf("%s: %#v", name, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q is not in\n%v", name, w, err)
		}
	}
}

func TestEvaluation(t *testing.T) {
	volume := iso.Edition{EditionID: "ServerDatacenter"}
	for _, c := range []struct {
		editions []iso.Edition
		want     bool
	}{
		{isotest.Editions("2022"), true}, {[]iso.Edition{volume}, false}, {append(isotest.Editions("2022"), volume), false}, {nil, false},
	} {
		if got := (iso.Media{Editions: c.editions}).Evaluation(); got != c.want {
			t.Errorf("%d editions: %v", len(c.editions), got)
		}
	}
	if e := isotest.Editions("2022")[0]; !e.Evaluation() || e.Version() != "10.0.20348.587" {
		t.Errorf("%v, %s", e.Evaluation(), e.Version())
	}
}
