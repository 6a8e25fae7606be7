// Package componenttest has small repositories of the shape of Antrea, Calico
// and containerd: the same modules, packages and version variables, in programs
// that compile in seconds. It is for tests only and must not import the package
// that it tests.
package componenttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hcsshim is the module of containerd's shim, Shim the version that the fixture
// names.
const (
	hcsshim = "github.com/Microsoft/hcsshim"
	Shim    = "v0.15.0-rc.3"
)

// Tree writes the fixture's source of a project ("antrea", "calico",
// "calico-3.33", "containerd" or "flannel") into dir.
func Tree(dir, project string) error {
	files, err := sources(project)
	if err != nil {
		return err
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

// sources are a project's files.
func sources(project string) (map[string]string, error) {
	switch project {
	case "antrea":
		const m = "antrea.io/antrea/v2"
		f := map[string]string{"go.mod": mod(m), "VERSION": "v2.7.0\n", "pkg/version/version.go": variables("version", "Version", "GitSHA", "GitTreeState", "ReleaseStatus")}
		for _, p := range []string{"antrea-agent", "antrea-cni", "antctl"} {
			f["cmd/"+p+"/main.go"] = program(m+"/pkg/version", "version.Version, version.GitSHA, version.GitTreeState, version.ReleaseStatus")
		}
		return f, nil
	case "calico", "calico-3.33":
		const m = "github.com/projectcalico/calico"
		f := map[string]string{"go.mod": mod(m), "pkg/buildinfo/buildinfo.go": variables("buildinfo", "Version", "GitRevision", "BuildDate")}
		main := program(m+"/pkg/buildinfo", "buildinfo.Version, buildinfo.GitRevision, buildinfo.BuildDate")
		f["cni-plugin/cmd/calico/calico.go"] = main
		f["node/cmd/calico-node/main.go"] = main
		if project != "calico" {
			f["cmd/calico-windows/main.go"] = main
		}
		return f, nil
	case "containerd":
		const m = "github.com/containerd/containerd/v2"
		f := map[string]string{"go.mod": mod(m), "script/setup/runhcs-version": Shim + "\n",
			"version/version.go": strings.Replace(variables("version", "Package", "Version", "Revision"), "Version string", `Version = "2.3.4+unknown"`, 1)}
		for _, p := range []string{"containerd", "ctr"} {
			f["cmd/"+p+"/main.go"] = program(m+"/version", "version.Package, version.Version, version.Revision")
		}
		return f, nil
	case "hcsshim":
		return map[string]string{"go.mod": mod(hcsshim), "cmd/containerd-shim-runhcs-v1/main.go": program("os", "len(os.Args)")}, nil
	case "flannel":
		return map[string]string{"go.mod": mod("github.com/flannel-io/flannel"), "main.go": program("os", "len(os.Args)")}, nil
	}
	return nil, fmt.Errorf("there is no fixture of %s", project)
}

func mod(path string) string { return "module " + path + "\n\ngo 1.21\n" }

// variables is a package with string variables.
func variables(pkg string, names ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nvar (\n", pkg)
	for _, n := range names {
		fmt.Fprintf(&b, "\t%s string\n", n)
	}
	return b.String() + ")\n"
}

// program is a program that prints something of one package.
func program(pkg, values string) string {
	return fmt.Sprintf("package main\n\nimport (\n\t\"fmt\"\n\n\t%q\n)\n\nvar VERSION string\n\nfunc main() { fmt.Println(VERSION, %s) }\n", pkg, values)
}
