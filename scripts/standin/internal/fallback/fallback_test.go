package fallback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/machinetest"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// bench is a stand-in without a machine.
type bench struct {
	*Env
	t      *testing.T
	fake   *machinetest.Fake
	sealed string
}

func newBench(t *testing.T, parameters string) *bench {
	t.Helper()
	c, seed := t.TempDir(), t.TempDir()
	if err := state.Create(c, state.State{Accounts: []state.Account{{Name: "wbox"}}}); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, fake: &machinetest.Fake{
		Table:   []machine.Partition{{Number: 1, FileSystem: "FAT32", Label: "System"}, {Number: 3, FileSystem: "FAT32", Label: "WBOX"}},
		Content: map[int]string{3: t.TempDir()},
	}}
	b.Env = &Env{State: store, Machine: b.fake, C: c, Seed: seed,
		Seal: func(account string) { b.sealed = account },
		WinRM: func(w state.WinRM, _ []byte, _ string) error {
			return store.Change(func(s *state.State) error { s.WinRM = w; return nil })
		}}
	b.write(filepath.Join(seed, "wbox", "parameters.json"), parameters)
	b.write(filepath.Join(seed, "payload", "winrm.pfx"), "pfx")
	return b
}

func (b *bench) write(path, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// run runs a script and checks state and exit code.
func (b *bench) run(script, mode, want string, exit int) Result {
	b.t.Helper()
	line, code := Run(context.Background(), b.Env, script, mode)
	var r Result
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		b.t.Fatal(err)
	}
	if r.State != want || code != exit || r.Script != script || r.Mode != mode || r.Executed != "stand-in" {
		b.t.Errorf("%s %s: %s with %d, want %s with %d", script, mode, line, code, want, exit)
	}
	return r
}

// reboot is what the agent does to features at a boot.
func (b *bench) reboot() {
	err := b.State.Change(func(s *state.State) error {
		for name := range s.Features {
			s.Features[name] = "installed"
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestLicence(t *testing.T) {
	b := newBench(t, `{"14-check-licence":{"activate":true}}`)
	if err := b.State.Change(func(s *state.State) error { s.Edition, s.Installed = "ServerDatacenterEval", time.Now(); return nil }); err != nil {
		t.Fatal(err)
	}
	b.run("14-check-licence", "test", "absent", 0)
	b.run("14-check-licence", "set", "present", 0)
	r := b.run("14-check-licence", "test", "present", 0)
	if r.Facts["activation"] != "not activated: the stand-in has no network" || r.Facts["licenseStatus"] != 2.0 {
		t.Errorf("without a network: %v", r.Facts)
	}
	b.Outside = func(context.Context) error { return nil }
	if err := b.State.Change(func(s *state.State) error { s.Activation = ""; return nil }); err != nil {
		t.Fatal(err)
	}
	b.run("14-check-licence", "set", "present", 0)
	if r := b.run("14-check-licence", "test", "present", 0); r.Facts["activation"] != "activated" || r.Facts["licenseStatus"] != 1.0 {
		t.Errorf("with one: %v", r.Facts)
	}
}

func TestLayers(t *testing.T) {
	b := newBench(t, `{"20-install-features":{"features":["Containers"],"dism":["Microsoft-Hyper-V"]}}`)
	b.run("00-test-ready", "test", "present", 0)
	b.run("10-enable-winrm", "test", "absent", 0)
	b.run("10-enable-winrm", "set", "present", 0)
	b.run("10-enable-winrm", "test", "present", 0)
	b.run("12-prepare-system", "test", "absent", 0)
	b.run("12-prepare-system", "set", "present", 0)
	b.run("12-prepare-system", "test", "present", 0)
	if got := b.fake.Table[1].Attributes; got != machine.ReadOnly|machine.Hidden|machine.NoDriveLetter {
		t.Errorf("attributes %#x", uint64(got))
	}
	b.run("20-install-features", "test", "absent", 0)
	if r := b.run("20-install-features", "set", "absent", RebootRequired); !r.Reboot {
		t.Error("features need no reboot")
	}
	b.run("20-install-features", "test", "absent", 0)
	b.run("00-test-ready", "test", "absent", 0)
	b.reboot()
	b.run("20-install-features", "test", "present", 0)
	b.run("20-install-features", "set", "present", 0)
	for _, script := range []string{"30-install-runtime", "40-prepare-cni", "50-prepare-node"} {
		b.run(script, "test", "absent", 0)
		b.run(script, "set", "present", 0)
		b.run(script, "test", "present", 0)
	}
}

func TestRefuses(t *testing.T) {
	b := newBench(t, `{"20-install-features":{"features":"Containers"},"90-generalize":{"account":"wbox","bakeAccount":"WBOX"}}`)
	for _, c := range [][2]string{
		{"21-unknown", "test"}, {"00-test-ready", "set"}, {"10-enable-winrm", "undo"}, {"20-install-features", "set"},
		{"99-prove-payload", "test"}, {"90-generalize", "set"},
	} {
		if r := b.run(c[0], c[1], "failed", 1); r.Message == "" {
			t.Errorf("%v says nothing", c)
		}
	}
}

func TestGeneralize(t *testing.T) {
	b := newBench(t, `{"90-generalize":{"account":"vagrant","password":"v","bakeAccount":"wbox"}}`)
	b.run("90-generalize", "test", "absent", 0)
	b.run("90-generalize", "set", "present", 0)
	s := b.State.Get()
	if a := s.Account("vagrant"); a == nil || a.Password != "v" || !s.WinRM.HTTP || b.sealed != "wbox" {
		t.Errorf("state %+v, sealed %q", s, b.sealed)
	}
	b.run("90-generalize", "test", "absent", 0) // until sealing is over
}

// program is a PE program's header for a machine.
func program(machine string) string {
	head := make([]byte, 0x40)
	copy(head, "MZ")
	head[0x3c] = 0x40
	return string(head) + "PE\x00\x00" + machine + strings.Repeat("\x00", 64)
}

func TestPayload(t *testing.T) {
	amd64, arm64 := program("\x64\x86"), program("\x64\xaa")
	list := func(content string) string {
		sum := sha256.Sum256([]byte(content))
		data, err := json.Marshal([]File{{Name: "kubelet.exe", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, c := range map[string]struct {
		listed, there, extra, want string
		copyFails                  bool
	}{
		"right":        {listed: amd64, there: amd64, want: "present"},
		"other bytes":  {listed: amd64, there: amd64 + "x", want: "absent", copyFails: true},
		"arm64":        {listed: arm64, there: arm64, want: "absent"},
		"no program":   {listed: "text", there: "text", want: "absent"},
		"foreign file": {listed: amd64, there: amd64, extra: "kubectl.exe", want: "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `{"99-prove-payload":{"files":`+list(c.listed)+`}}`)
			b.run("99-prove-payload", "test", "absent", 0)
			b.write(filepath.Join(b.fake.Content[3], "payload.json"), list(c.listed))
			b.write(filepath.Join(b.fake.Content[3], "kubelet.exe"), c.there)
			if c.extra != "" {
				b.write(filepath.Join(b.C, "k", c.extra), "x")
			}
			if err := CopyPayload(context.Background(), b.Env, "WBOX"); (err != nil) != c.copyFails {
				t.Errorf("copying: %v", err)
			}
			b.run("99-prove-payload", "test", c.want, 0)
		})
	}
}
