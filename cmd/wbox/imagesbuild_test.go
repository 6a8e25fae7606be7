package main

import (
	"context"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder/component/componenttest"
)

// pluginRepo DIR PROJECT TAG: a repository of a network plugin's shape.
func pluginRepo(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: pluginrepo DIR PROJECT TAG")
	}
	_, err := componenttest.Repo(context.Background(), ts.MkAbs(args[0]), args[1], args[2])
	ts.Check(err)
}
