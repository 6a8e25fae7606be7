package kube

import (
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

func TestFlagsOfAFolderAreRefusedElsewhere(t *testing.T) {
	for _, text := range []string{"git:https://example.org/k.git@main", "pull/12345", "master", "release-1.37", "0123abcdef"} {
		if _, err := Parse(text, Options{Base: "v1.36.3"}); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), "--k8s-base v1.36.3") {
			t.Errorf("%s with a base: got %v", text, err)
		}
		if _, err := Parse(text, Options{Version: "v1.36.3"}); err != nil { // a repository without tags
			t.Errorf("%s with a version: got %v", text, err)
		}
	}
	for _, text := range []string{"v1.37.2", "1.37", "stable", "latest-1.37", "ci/latest", "release/v1.37.2"} {
		for flag, opts := range map[string]Options{
			"--k8s-base v1.36.3":    {Base: "v1.36.3"},
			"--k8s-version v1.36.3": {Version: "v1.36.3"},
		} {
			if _, err := Parse(text, opts); fault.ClassOf(err) != fault.Usage || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s with %s: got %v", text, flag, err)
			}
		}
		if _, err := Parse(text, Options{}); err != nil {
			t.Errorf("%s alone: got %v", text, err)
		}
	}
}
