package kubetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// staging are the fixture's staging modules.
func staging() []string { return []string{"k8s.io/client-go", "k8s.io/component-base"} }

// Tree writes the fixture's source into dir: a module k8s.io/kubernetes with
// the commands, and staging modules that hold the version variables and
// kube-log-runner. The latter knows no version, as the real one.
func Tree(dir string) error { return writeTree(dir, Release{}) }

// writeTree writes the source of a release.
func writeTree(dir string, r Release) error {
	const client, component = "staging/src/k8s.io/client-go/", "staging/src/k8s.io/component-base/"
	files := map[string]string{
		"go.mod":                       strings.Replace(rootMod, "go 1.21\n", "go "+or(r.NeedsGo, "1.21")+"\n", 1),
		"go.sum":                       "",
		".go-version":                  or(r.GoVersion, "1.26.0") + "\n",
		"hack/lib/golang.sh":           "  gotags=\"selinux,notest,$(true)\"\n",
		client + "go.mod":              "module k8s.io/client-go\n\ngo 1.21\n",
		client + "pkg/version/base.go": versionPackage,
		component + "go.mod":           "module k8s.io/component-base\n\ngo 1.21\n",
		component + "version/base.go":  versionPackage,
		component + "logs/kube-log-runner/kube-log-runner.go": `package main

import "fmt"

var variant string

func main() { fmt.Println("kube-log-runner", variant) }
`,
	}
	for _, p := range []string{"kubelet", "kube-proxy", "kubeadm", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		files["cmd/"+p+"/"+p+".go"] = mainPackage
	}
	files["cmd/kubeadm/kubeadm.go"] = kubeadmPackage
	files["cmd/kubeadm/app/constants/constants.go"] = constantsPackage
	if r.Broken {
		files["cmd/kubelet/kubelet_windows.go"] = "package main\n\nvar broken int = \"no number\"\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the fixture's source: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the fixture's source: %w", err)
		}
	}
	return nil
}

const rootMod = `module k8s.io/kubernetes

go 1.21

require (
	k8s.io/client-go v0.0.0
	k8s.io/component-base v0.0.0
)

replace (
	k8s.io/client-go => ./staging/src/k8s.io/client-go
	k8s.io/component-base => ./staging/src/k8s.io/component-base
)
`

const versionPackage = `package version

var (
	gitMajor, gitMinor string
	gitVersion   = "v0.0.0-unstamped"
	gitCommit    = "unknown"
	gitTreeState = "unknown"
	buildDate    = "never"
)

// Get returns the version as kubelet --version prints it.
func Get() string { return "Kubernetes " + gitVersion }

// Detail returns all that there is to know.
func Detail() []string { return []string{gitMajor, gitMinor, gitVersion, gitCommit, gitTreeState, buildDate} }
`

const mainPackage = `package main

import (
	"fmt"
	"os"

	client "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
)

var variant string

func main() {
	fmt.Println(version.Get())
	if len(os.Args) > 2 {
		fmt.Println(version.Detail(), client.Detail(), variant)
	}
}
`

// The tags that the fixture's kubeadm asks for.
const (
	Etcd    = "3.7.0-0"
	CoreDNS = "v1.14.6"
	Pause   = "3.10.2"
)

const constantsPackage = `package constants

const (
	// DefaultEtcdVersion is not the one of the table.
	DefaultEtcdVersion = "3.0.0-0"
	CoreDNSVersion     = "` + CoreDNS + `"
	PauseVersion       = "` + Pause + `"
)

// SupportedEtcdVersion is by minor.
var SupportedEtcdVersion = map[uint8]string{
	36: "3.6.8-0",
	37: "` + Etcd + `",
}
`

const kubeadmPackage = `package main

import (
	"fmt"
	"os"
	"strings"

	client "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
)

var variant string

func main() {
	if strings.HasPrefix(strings.Join(os.Args[1:], " "), "config images list --kubernetes-version") {
		fmt.Println(os.Args[len(os.Args)-1] + "/coredns/coredns:" + constants.CoreDNSVersion)
		fmt.Println(os.Args[len(os.Args)-1] + "/pause:" + constants.PauseVersion)
		fmt.Println(os.Args[len(os.Args)-1] + "/etcd:" + constants.SupportedEtcdVersion[37])
		return
	}
	fmt.Println(version.Get())
	if len(os.Args) > 2 {
		fmt.Println(version.Detail(), client.Detail(), variant)
	}
}
`
