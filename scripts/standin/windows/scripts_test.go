package windows_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"fmt"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/archive"
	"github.com/wbox-dev/wbox/images/imagestest"
	"github.com/wbox-dev/wbox/scripts/standin/internal/containerd"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/scripts"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
)

// result is a script's result line.
type result struct {
	Script, Mode, State, Message string
	Reboot                       bool
	Facts                        map[string]any
}

// insert puts the guest scripts and their parameters onto the seed.
func (w *world) insert(parameters map[string]any) {
	w.t.Helper()
	files, err := fs.Glob(scripts.Guest, "guest/*")
	w.must(err)
	for _, f := range files {
		data, err := fs.ReadFile(scripts.Guest, f)
		w.must(err)
		w.write(filepath.Join(w.seed, "wbox", filepath.Base(f)), string(data))
	}
	line, err := json.Marshal(parameters)
	w.must(err)
	w.write(filepath.Join(w.seed, "wbox", "parameters.json"), string(line))
}

// script runs a guest script as the bake does.
func (h *host) script(name, mode, user string) (result, int) {
	h.w.t.Helper()
	text := fmt.Sprintf("# wbox: run %s %s\n$v = @(Get-CimInstance Win32_LogicalDisk -Filter \"VolumeName='WBOXSEED'\") | Select-Object -First 1\n"+
		"& ($v.DeviceID + '\\wbox\\Invoke-WboxScript.ps1') -Name '%s' -Mode %s\nexit $LASTEXITCODE\n", name, mode, name, mode)
	r := h.request(pshost.Request{Kind: "command", User: user, Text: text})
	lines := strings.Split(strings.TrimSpace(r.stdout), "\r\n")
	var res result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); err != nil {
		h.w.t.Fatalf("%s %s: no result line: exit %d, %q, %q", name, mode, r.exit, r.stdout, r.stderr)
	}
	h.w.t.Logf("%s %s: exit %d, %s, reboot %v, %s %v", name, mode, r.exit, res.State, res.Reboot, res.Message, res.Facts)
	if r.stderr != "" {
		h.w.t.Errorf("%s %s: stderr %q", name, mode, r.stderr)
	}
	return res, r.exit
}

// expect runs a script and checks state and exit code.
func (h *host) expect(name, mode, user, state string, exit int) result {
	h.w.t.Helper()
	r, code := h.script(name, mode, user)
	if r.State != state || code != exit {
		h.w.t.Fatalf("%s %s: %s with exit code %d, want %s with %d: %s", name, mode, r.State, code, state, exit, r.Message)
	}
	return r
}

// bring brings a script's state about in one go, and again for idempotence.
func (h *host) bring(name string) result {
	h.w.t.Helper()
	h.expect(name, "test", "wbox", "absent", 0)
	h.expect(name, "set", "wbox", "present", 0)
	r := h.expect(name, "test", "wbox", "present", 0)
	h.expect(name, "set", "wbox", "present", 0)
	return r
}

// reboot starts a new host over the same world, at a later time.
func (w *world) reboot(h *host, seconds int) *host {
	w.t.Helper()
	h.stop()
	w.boot(seconds)
	h = w.start()
	if r := h.request(pshost.Request{Kind: "boot"}); r.exit != 0 || r.stderr != "" {
		w.t.Fatalf("boot: %+v; %s", r, h.logged())
	}
	return h
}

// certificate makes the bake's PFX with the old algorithms, which Windows
// Server 2019 wants.
func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "wbox-bake"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pfx, err := pkcs12.LegacyDES.Encode(key, cert, nil, "secret")
	if err != nil {
		t.Fatal(err)
	}
	return pfx
}

// program is a PE file for amd64 that holds nothing else.
func program(name string) []byte {
	b := make([]byte, 300)
	copy(b, "MZ")
	b[0x3C] = 0x80
	copy(b[0x80:], "PE\x00\x00\x64\x86")
	return append(b, name...)
}

// payloadFiles fills the payload partition and returns what it holds.
func (w *world) payloadFiles(names ...string) []map[string]any {
	w.must(os.RemoveAll(w.payload))
	var list []map[string]any
	for _, n := range names {
		data := program(n)
		w.write(filepath.Join(w.payload, n), string(data))
		sum := sha256.Sum256(data)
		list = append(list, map[string]any{"name": n, "sha256": hex.EncodeToString(sum[:]), "size": len(data)})
	}
	index, err := json.Marshal(list)
	w.must(err)
	w.write(filepath.Join(w.payload, "payload.json"), string(index))
	return list
}

// TestABakeFromInstallationToProof drives every guest script through the
// simulated Windows as a bake does: absent, set, a reboot where it is asked
// for, present, sealed, proven.
func TestABakeFromInstallationToProof(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.seed, "payload", "winrm.pfx"), string(certificate(t)))
	for _, p := range []string{"antrea-agent", "antrea-cni", "antctl"} {
		w.write(filepath.Join(w.seed, "payload", "cni", p+".exe"), string(program(p)))
	}
	kubelet := []string{"--windows-service", "--resolv-conf=", "--config=C:/var/lib/kubelet/config.yaml"}
	parameters := map[string]any{
		"10-enable-winrm":     map[string]any{"pfx": "winrm.pfx", "pfxPassword": "secret", "account": "wbox", "port": 5986},
		"12-prepare-system":   map[string]any{},
		"20-install-features": map[string]any{"features": []string{"Containers", "Hyper-V-PowerShell", "RemoteAccess", "RSAT-RemoteAccess-PowerShell", "Routing"}, "dism": []string{"Microsoft-Hyper-V"}, "disableDism": []string{"Microsoft-Hyper-V-Online"}},
		"30-install-runtime":  map[string]any{"configVersion": 3, "sandboxImage": "example.org/pause:3.10.2", "binDirs": []string{"C:/opt/cni/bin"}, "confDir": "C:/etc/cni/net.d"},
		"40-prepare-cni":      map[string]any{"cni": "antrea", "places": component.Places(component.Antrea), "needed": component.Needed(component.Antrea)},
		"50-prepare-node":     map[string]any{"minor": 37, "kubeletArgs": kubelet, "featureOverrides": []map[string]any{{"id": "1114842764", "value": 0}}},
		"90-generalize":       map[string]any{"account": "vagrant", "password": "vagrant", "publicKey": "ssh-ed25519 AAAA box", "bakeAccount": "wbox", "sealDelaySeconds": 2},
	}
	w.insert(parameters)
	h := w.start()

	// windows: as the answer file's first logon, then over WinRM.
	h.expect("10-enable-winrm", "set", "wbox", "present", 0)
	thumbprint := h.expect("10-enable-winrm", "test", "wbox", "present", 0).Facts["thumbprint"]
	if w.winrm["https"] != true || w.winrm["basic"] != true || w.winrm["certificate"] != thumbprint {
		t.Errorf("the agent listens as %v, want certificate %v", w.winrm, thumbprint)
	}
	h.expect("10-enable-winrm", "set", "wbox", "present", 0)
	w.auto = ""
	h.bring("12-prepare-system")
	if w.attrs != 1<<60|1<<62|1<<63 {
		t.Errorf("attributes of the payload partition: %#x", w.attrs)
	}
	h.expect("14-check-licence", "set", "wbox", "present", 0)
	if f := h.expect("14-check-licence", "test", "wbox", "present", 0).Facts; f["evaluation"] != true || f["licenseStatus"] != 2.0 || f["installed"] != "2026-12-01T16:30:00.0000000Z" {
		t.Errorf("licence: %v", f)
	}
	h.expect("00-test-ready", "test", "wbox", "present", 0)

	// features: nothing is active before the reboot.
	h.expect("20-install-features", "test", "wbox", "absent", 0)
	if r := h.expect("20-install-features", "set", "wbox", "absent", 3010); !r.Reboot {
		t.Error("no reboot is asked for")
	}
	h.expect("20-install-features", "test", "wbox", "absent", 0)
	h.expect("00-test-ready", "test", "wbox", "absent", 0)
	h = w.reboot(h, 1_700_001_000)
	h.expect("00-test-ready", "test", "wbox", "present", 0)
	features := h.expect("20-install-features", "test", "wbox", "present", 0).Facts["features"].([]any)
	if !slices.Contains(features, any("Routing")) || !slices.Contains(features, any("DirectAccess-VPN")) {
		t.Errorf("features: %v", features)
	}

	h.bring("30-install-runtime")
	h.bring("40-prepare-cni")
	h.bring("50-prepare-node")

	// generalize: the machine turns itself off.
	h.expect("90-generalize", "test", "wbox", "absent", 0)
	h.expect("90-generalize", "set", "wbox", "present", 0)
	w.waitOff()
	if w.winrm["https"] != false || w.winrm["basic"] != false || w.winrm["http"] != true || len(w.certs) != 0 {
		t.Errorf("the sealed agent listens as %v, certificates %v", w.winrm, w.certs)
	}
	for _, path := range []string{"Windows/Panther/unattend.xml", "Users/wbox", "ProgramData/wbox/Complete-WboxSeal.ps1", "ProgramData/wbox/seal.json"} {
		if _, err := os.Stat(filepath.Join(w.c, path)); err == nil {
			t.Errorf("%s is still there", path)
		}
	}

	// payload and proof: the host writes the partition, the boot task copies.
	parameters["99-prove-payload"] = map[string]any{"files": w.payloadFiles("kubelet.exe", "kube-log-runner.exe")}
	delete(parameters, "10-enable-winrm")
	w.insert(parameters)
	w.must(os.RemoveAll(filepath.Join(w.seed, "payload")))
	h = w.reboot(h, 1_700_002_000)
	for _, name := range []string{"00-test-ready", "12-prepare-system", "20-install-features", "30-install-runtime", "40-prepare-cni", "50-prepare-node", "90-generalize", "99-prove-payload"} {
		h.expect(name, "test", "vagrant", "present", 0)
	}

	// Another payload: what differs is copied, what is gone goes.
	parameters["99-prove-payload"] = map[string]any{"files": w.payloadFiles("kubelet.exe", "kube-proxy.exe")}
	w.insert(parameters)
	h.expect("99-prove-payload", "test", "vagrant", "absent", 0)
	h = w.reboot(h, 1_700_003_000)
	h.expect("99-prove-payload", "test", "vagrant", "present", 0)
}

// waitOff waits for the sealing task.
func (w *world) waitOff() {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		w.mu.Lock()
		off := slices.Clone(w.power)
		w.mu.Unlock()
		if len(off) > 0 {
			if off[0] != "/s /f /t 0" {
				w.t.Fatalf("shutdown.exe %q", off)
			}
			return
		}
	}
	w.t.Fatal("the machine is not turned off")
}

// TestContainerdFromTheSeed: with its programs there is a service, and it is
// up after a boot.
func TestContainerdFromTheSeed(t *testing.T) {
	w := newWorld(t)
	w.insert(map[string]any{"30-install-runtime": map[string]any{"sandboxImage": "example.org/pause:3.10.2"}})
	w.write(filepath.Join(w.seed, "payload", "containerd", "containerd.exe"), string(program("containerd")))
	h := w.start()
	h.bring("30-install-runtime")
	h = w.reboot(h, 1_700_001_000)
	h.expect("30-install-runtime", "test", "wbox", "present", 0)
	want := "Running \"C:\\Program Files\\containerd\\containerd.exe\" --run-service --config \"C:\\Program Files\\containerd\\config.toml\" --log-file C:\\ProgramData\\containerd\\containerd.log\r\n"
	if r := h.command("$s = Get-CimInstance Win32_Service -Filter \"Name='containerd'\"; \"$($s.State) $($s.PathName)\""); r.stdout != want {
		t.Errorf("%q, want %q; %s", r.stdout, want, r.stderr)
	}
}

// TestPreload has Debian's containerd import a Windows image, and finds it again
// after a boot by its digest.
func TestPreload(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	for _, name := range []string{"containerd", "ctr"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs Debian's containerd: %v", err)
		}
	}
	w := newWorld(t)
	const name = "registry.k8s.io/pause:3.10.1"
	made, err := imagestest.Make(imagestest.Spec{Platforms: []v1.Platform{imagestest.Windows("10.0.20348.1")}, Layers: 2, Size: 5000})
	w.must(err)
	archives := filepath.Join(w.seed, "payload", "images")
	w.must(os.MkdirAll(archives, 0o755))
	_, err = archive.Save(t.Context(), filepath.Join(archives, "pause.tar"), []archive.Entry{{Names: []string{name}, Source: images.Built(made.Image, "made")}}, archive.Options{})
	w.must(err)
	preload := func(digest string) {
		w.insert(map[string]any{"30-install-runtime": map[string]any{"sandboxImage": name}, "32-preload-images": map[string]any{"unpack": false, "pinned": []string{name},
			"images": []map[string]any{{"name": name, "digest": digest, "file": "pause.tar"}}}})
	}
	preload(made.Digest.String())
	for _, p := range []string{"containerd", "ctr"} {
		w.write(filepath.Join(w.seed, "payload", "containerd", p+".exe"), string(program(p)))
	}
	var r *containerd.Runtime
	boot := func() {
		if r != nil {
			r.Stop()
		}
		r = &containerd.Runtime{Programs: "/usr/bin", Root: filepath.Join(w.c, "ProgramData", "containerd", "root"), State: t.TempDir(), Logf: t.Logf}
		t.Cleanup(r.Stop)
		w.ctr = r.Ctr
	}
	boot()
	h := w.start()
	h.bring("30-install-runtime")
	h.expect("32-preload-images", "test", "wbox", "absent", 0)
	h.bring("32-preload-images")
	boot()
	h = w.reboot(h, 1_700_001_000)
	if f := h.expect("32-preload-images", "test", "wbox", "present", 0).Facts; fmt.Sprint(f["images"]) != fmt.Sprintf("[%s %s]", name, made.Digest) {
		t.Errorf("facts: %v", f)
	}
	preload("sha256:" + strings.Repeat("0", 64))
	if r := h.expect("32-preload-images", "test", "wbox", "absent", 0); !strings.Contains(r.Message, "is "+made.Digest.String()+", not sha256:0000") {
		t.Errorf("another digest: %s", r.Message)
	}
}

// TestActivation: an evaluation is activated where the network leads out, and
// elsewhere the bake goes on with the reason.
func TestActivation(t *testing.T) {
	w := newWorld(t)
	w.insert(map[string]any{"14-check-licence": map[string]any{"activate": true, "attempts": 1}})
	h := w.start()
	h.expect("14-check-licence", "test", "wbox", "absent", 0)
	h.expect("14-check-licence", "set", "wbox", "present", 0)
	f := h.expect("14-check-licence", "test", "wbox", "present", 0).Facts
	if f["activation"] != "not activated: the network does not lead out (0x80072ee7)" || f["licenseStatus"] != 2.0 || f["gracePeriodRemaining"] != 14400.0 {
		t.Errorf("without a way out: %v", f)
	}
	w.online = true
	h.expect("14-check-licence", "set", "wbox", "present", 0)
	if f = h.expect("14-check-licence", "test", "wbox", "present", 0).Facts; f["activation"] != "activated" || f["licenseStatus"] != 1.0 {
		t.Errorf("with one: %v", f)
	}
}

// TestScriptsFailLoudly: what can't be had is an error that says so.
func TestScriptsFailLoudly(t *testing.T) {
	w := newWorld(t)
	w.insert(map[string]any{
		"10-enable-winrm":     map[string]any{"pfxPassword": "secret"},
		"12-prepare-system":   map[string]any{"payloadLabel": "NONE"},
		"20-install-features": map[string]any{"features": []string{"PowerShell-ISE"}},
		"40-prepare-cni":      map[string]any{"cni": "weave"},
		"90-generalize":       map[string]any{"account": "wbox", "password": "x", "bakeAccount": "wbox"},
	})
	h := w.start()
	for script, want := range map[string]string{
		"10-enable-winrm": "winrm.pfx", "12-prepare-system": "0 volumes labelled NONE", "20-install-features": "no feature named PowerShell-ISE",
		"40-prepare-cni": "no CNI named weave", "90-generalize": "can't have the name", "50-prepare-node": "lacks 'minor'", "00-test-ready": "only tests",
	} {
		t.Run(script, func(t *testing.T) {
			r, exit := h.script(script, "set", "wbox")
			if exit != 1 || r.State != "failed" || !strings.Contains(r.Message, want) {
				t.Errorf("exit %d, %s: %s; want %q", exit, r.State, r.Message, want)
			}
		})
	}
}
