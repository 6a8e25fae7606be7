package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"golang.org/x/mod/semver"
)

// versionPackages hold the version variables; the official build sets those of
// both (hack/lib/version.sh).
func versionPackages() []string {
	return []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"}
}

// packageOf returns the import path of a program's main package.
func packageOf(program string) string {
	if program == KubeLogRunner {
		return "k8s.io/component-base/logs/kube-log-runner"
	}
	return mainModule + "/cmd/" + program
}

// ldflags returns the linker flags that stamp the version as the official build does (hack/lib/golang.sh,
// hack/lib/version.sh). A commit that isn't known is set to nothing, since the
// default is a placeholder; a date that isn't known stays at its default.
func ldflags(ref Ref) string {
	minor := minorOf(ref.Version)
	if semver.Prerelease(ref.Version) != "" {
		minor += "+"
	}
	vars := [][2]string{
		{"gitVersion", ref.Version},
		{"gitCommit", ref.Commit},
		{"gitTreeState", ref.TreeState},
		{"gitMajor", strings.TrimPrefix(semver.Major(ref.Version), "v")},
		{"gitMinor", minor},
	}
	if ref.BuildDate != "" {
		vars = append(vars, [2]string{"buildDate", ref.BuildDate})
	}
	var b strings.Builder
	b.WriteString("all=")
	for _, v := range vars {
		for _, pkg := range versionPackages() {
			b.WriteString("-X '" + pkg + "." + v[0] + "=" + v[1] + "' ")
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// buildFlags are the flags of go build that decide bytes. With debug they are
// those of the official DBG=1: no optimisation, symbols kept, true paths.
func buildFlags(ref Ref, tags string, debug bool) []string {
	if debug {
		return []string{"-buildvcs=false", "-gcflags=all=-N -l", "-tags=" + tags, "-ldflags=" + ldflags(ref)}
	}
	return []string{"-trimpath", "-buildvcs=false", "-tags=" + tags, "-ldflags=" + ldflags(ref) + " -s -w"}
}

// pinFlags adds the flags of a compile to a ref's inputs.
func pinFlags(inputs map[string]string, ref Ref, tags string, opts Options) {
	flags := buildFlags(ref, tags, opts.Debug)
	if opts.ControlPlane != "" {
		inputs[buildInputName+"-linux"] = buildInput(flags, linux, opts.ControlPlane)
		return
	}
	inputs[buildInputName] = buildInput(flags, windows, "amd64")
	if opts.Linux {
		inputs[buildInputName+"-linux"] = buildInput(flags, linux, "amd64")
	}
}

// buildInput is the digest under which flags enter a Ref's inputs.
func buildInput(flags []string, goos, goarch string) string {
	sum := sha256.Sum256([]byte(strings.Join(flags, "\x00") + "\x00" + goos + "/" + goarch + " GOAMD64=v1 CGO_ENABLED=0"))
	return "sha256:" + hex.EncodeToString(sum[:])
}
