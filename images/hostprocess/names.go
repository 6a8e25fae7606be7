package hostprocess

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Tag writes a version as a tag: what a tag can't hold becomes "_", as in the
// names that kubeadm asks for.
func Tag(version string) string {
	tag := regexp.MustCompile(`[^-\w.]`).ReplaceAllString(version, "_")
	return strings.TrimLeft(tag[:min(len(tag), 128)], "-.")
}

// tagged makes a reference; a version that gives no tag is a *fault.Problem of
// class fault.Input.
func tagged(repository, version, suffix string) (string, error) {
	tag := Tag(version)
	if tag == "" {
		return "", &fault.Problem{Class: fault.Input, Field: "the image's version", Value: version, Why: "can't be a tag", Fix: "give one such as v1.37.2"}
	}
	return repository + ":" + tag + suffix, nil
}

// minorOf returns the two numbers of "v3.31.0", and false for what begins
// otherwise ("master", a commit).
func minorOf(version string) (major, minor int, ok bool) {
	m := regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(\.|$|-)`).FindStringSubmatch(version)
	if m == nil {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(m[1])
	minor, _ = strconv.Atoi(m[2])
	return major, minor, true
}
