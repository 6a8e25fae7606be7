package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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

// members FILE: prints the names in a tar file.
func members(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: members FILE")
	}
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		ts.Check(err)
		_, err = fmt.Fprintln(ts.Stdout(), h.Name)
		ts.Check(err)
	}
}
