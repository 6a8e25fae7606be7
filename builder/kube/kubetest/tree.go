package kubetest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Tree writes the fixture's source into dir: a module k8s.io/kubernetes with
// the three commands, and the staging module that holds the version variables
// and kube-log-runner.
func Tree(dir string) error {
	const staging = "staging/src/k8s.io/component-base/"
	files := map[string]string{
		"go.mod": `module k8s.io/kubernetes

go 1.21

require k8s.io/component-base v0.0.0

replace k8s.io/component-base => ./staging/src/k8s.io/component-base
`,
		".go-version":                          "1.26.0\n",
		"hack/lib/golang.sh":                   "  gotags=\"selinux,notest\"\n",
		staging + "go.mod":                     "module k8s.io/component-base\n\ngo 1.21\n",
		staging + "version/version.go":         versionPackage,
		staging + "logs/kube-log-runner/kl.go": mainPackage("kube-log-runner"),
	}
	for _, p := range []string{"kubelet", "kube-proxy", "kubeadm"} {
		files["cmd/"+p+"/main.go"] = mainPackage(p)
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

const versionPackage = `package version

var (
	gitVersion = "v0.0.0-fixture"
	gitCommit  = "unknown"
	buildDate  = "never"
	variant    = ""
)

// Text is the version as kubelet --version prints it.
func Text() string { return "Kubernetes " + gitVersion }

// Detail is all that there is to know.
func Detail() string { return gitCommit + " " + buildDate + " " + variant }
`

func mainPackage(program string) string {
	return `package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/version"
)

func main() {
	fmt.Println(version.Text())
	if len(os.Args) > 2 {
		fmt.Println("` + program + `", version.Detail())
	}
}
`
}
