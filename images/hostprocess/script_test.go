package hostprocess

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// simulated stands in for Windows: the network appears at the third look.
const simulated = `
$global:looks = 0
function Get-HnsNetwork { $global:looks++; if ($global:looks -ge $env:TEST_APPEARS) { [pscustomobject]@{ Name = 'Calico'; Type = $env:TEST_TYPE } } }
function Get-HnsEndpoint { [pscustomobject]@{ Name = 'Calico_ep'; IPAddress = [ipaddress]'10.1.2.3' } }
function Get-HnsPolicyList { [pscustomobject]@{ ID = 'old' } }
function Remove-HnsPolicyList { [CmdletBinding()] param([Parameter(ValueFromPipeline)] $List) process { "removed $($List.ID)" } }
function Start-Sleep { }
& $env:TEST_SCRIPT
`

// TestStartScript runs the script in PowerShell over simulated Windows, with a
// shell script in kube-proxy.exe's place.
func TestStartScript(t *testing.T) {
	finder, err := exec.CommandContext(t.Context(), "../../scripts/dev/find-pwsh.sh").Output()
	if testing.Short() || err != nil {
		t.Skip("starts PowerShell, or there is none")
	}
	for name, c := range map[string]struct {
		env    []string
		token  bool
		appear string
		want   []string
		not    string
		fails  bool
	}{
		"overlay": {env: []string{"TEST_TYPE=Overlay", "KUBE_PROXY_FEATURE_GATES=WinDSR=true"}, appear: "3",
			want: []string{"removed old", "arg:--source-vip=10.1.2.3", "arg:--hostname-override=node-1", "arg:--feature-gates=WinDSR=true", "network:Calico", "arg:--kubeconfig=MOUNT/var/lib/kube-proxy/kubeconfig.conf"}},
		"l2bridge, mounts below the container": {env: []string{"TEST_TYPE=L2Bridge"}, token: true, appear: "1",
			want: []string{"arg:--kubeconfig=MOUNT/kube-proxy/kubeconfig.conf", "tokenFile: MOUNT/var/run/secrets/kubernetes.io/serviceaccount/token"}, not: "source-vip"},
		"no network": {env: []string{"KUBE_PROXY_WAIT_SECONDS=3"}, appear: "99", want: []string{"the HNS network Calico did not appear within 3 seconds"}, not: "arg:", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			mount := t.TempDir()
			write := func(path, text string, mode os.FileMode) {
				path = filepath.Join(mount, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			write("kube-proxy/kube-proxy.exe", "#!/bin/sh\nfor a; do echo \"arg:$a\"; done\necho network:$KUBE_NETWORK\ncat \""+mount+"/kube-proxy/kubeconfig.conf\" 2>/dev/null\nexit 0\n", 0o755)
			write("var/lib/kube-proxy/kubeconfig.conf", "users:\n- user:\n    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n", 0o644)
			if c.token {
				write("var/run/secrets/kubernetes.io/serviceaccount/token", "t", 0o644)
			}
			script, err := filepath.Abs("scripts/start.ps1")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(finder)), "-NoProfile", "-Command", simulated)
			cmd.Env = append(os.Environ(), append(c.env, "TEST_SCRIPT="+script, "TEST_APPEARS="+c.appear, "CONTAINER_SANDBOX_MOUNT_POINT="+mount, "NODENAME=node-1",
				"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "POWERSHELL_TELEMETRY_OPTOUT=1", "NO_COLOR=1")...)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
			for _, w := range c.want {
				if w = strings.ReplaceAll(w, "MOUNT", mount); !strings.Contains(string(out), w) {
					t.Errorf("lacks %q", w)
				}
			}
			if c.not != "" && strings.Contains(string(out), c.not) {
				t.Errorf("has %q", c.not)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
