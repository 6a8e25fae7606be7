package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

// TestIsoScript is the contract of where Windows comes from. Its sessions have
// a server on the loopback interface.
func TestIsoScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: scripts(t, "testdata/iso"),
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "GOCACHE="+goEnv(t, "GOCACHE"), "GOPROXY=off", "WBOX_WINE=none", "BIN="+filepath.SplitList(e.Getenv("PATH"))[0],
				"WBOX_STORE="+e.WorkDir+"/.store", "XDG_CACHE_HOME="+e.WorkDir+"/.xdg-cache")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "fakeiso": fakeISO, "exes": exes, "cut": cut, "serve": serveMedia, "isotable": isoTable, "newiso": newISO,
		},
	})
}

// serveMedia DIR: from here on, $SERVER has the files of the folder. What is asked for
// below /cut/ is cut in its middle the first time.
func serveMedia(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: serve DIR")
	}
	dir := ts.MkAbs(args[0])
	var cuts atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, flaky := strings.CutPrefix(r.URL.Path, "/cut")
		name := filepath.Join(dir, filepath.FromSlash(path))
		b, err := os.ReadFile(name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"1"`)
		if flaky && cuts.Add(1) == 1 {
			w.Header().Set("Content-Length", strconv.Itoa(len(b)))
			w.Write(b[:len(b)/2])
			return
		}
		http.ServeFile(w, r, name)
	}))
	ts.Defer(s.Close)
	ts.Setenv("SERVER", s.URL)
}

// isoTable FILE NAME=ISO[@PATH]…: a table of media, each with the ISO's digest and
// size, to be found under PATH (default: /ISO).
func isoTable(ts *testscript.TestScript, _ bool, args []string) {
	var table []map[string]any
	for _, a := range args[1:] {
		name, file, _ := strings.Cut(a, "=")
		file, path, ok := strings.Cut(file, "@")
		if !ok {
			path = "/" + filepath.Base(file)
		}
		b, err := os.ReadFile(ts.MkAbs(file))
		ts.Check(err)
		table = append(table, map[string]any{"name": name, "release": "2022", "version": "10.0.20348.587", "editions": []string{"core", "desktop"},
			"sha256": sha256Hex(b), "size": len(b), "path": path, "page": "https://example.org/" + name, "licence": "an evaluation licence"})
	}
	b, err := json.Marshal(table)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o644))
}

// newISO FILE LEVEL: an ISO of Server 2022 with an update level below ten.
func newISO(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 || len(args[1]) != 1 {
		ts.Fatalf("usage: newiso FILE LEVEL")
	}
	editions := isotest.Editions("2022")
	for i := range editions {
		editions[i].SPBuild = 1000 + int(args[1][0]-'0')
	}
	ts.Check(isotest.WriteFake(ts.MkAbs(args[0]), editions, nil))
}

func sha256Hex(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
