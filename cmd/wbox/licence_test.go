package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/licence"
)

// installed PLAN DAYS [activated]: puts the Windows that a plan (as JSON) would
// install into the store, as one that was installed so many days ago. There is
// nothing on its disk.
func installed(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: installed PLAN DAYS [activated]")
	}
	days, err := strconv.Atoi(args[1])
	ts.Check(err)
	var plan struct{ Stages []builder.PlanLine }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &plan))
	key := ""
	for _, l := range plan.Stages {
		if l.Stage == "windows" {
			key = l.Key
		}
	}
	if key == "" {
		ts.Fatalf("%s has no windows layer", args[0])
	}
	then := time.Now().AddDate(0, 0, -days)
	g := licence.Guest{Edition: "ServerDatacenterEval", Evaluation: true, Installed: then, Now: then, Status: 2, Activation: "not tried: --offline"}
	if len(args) > 2 {
		g.Status, g.Activation = 1, "activated"
	}
	record, err := licence.New(then, then, g).Encode()
	ts.Check(err)
	dir := filepath.Join(ts.Getenv("WBOX_STORE"), "results", key)
	ts.Check(os.MkdirAll(dir, 0o755))
	outputs := map[string]any{}
	for name, content := range map[string]string{"disk": "disk", "access": "{}", "licence.json": string(record)} {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		outputs[name] = map[string]any{"kind": "file", "size": len(content)}
	}
	writeJSON(ts, filepath.Join(dir, "key.json"), map[string]any{"schema": 1, "stage": "windows",
		"fingerprint": map[string]any{"params": map[string]any{"generation": 1}}})
	writeJSON(ts, filepath.Join(dir, "result.json"), map[string]any{"key": key, "stage": "windows", "outputs": outputs, "started": then, "run": "old"})
}

func writeJSON(ts *testscript.TestScript, path string, v any) {
	data, err := json.Marshal(v)
	ts.Check(err)
	ts.Check(os.WriteFile(path, data, 0o644))
}
