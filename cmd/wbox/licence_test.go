package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/licence"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/cli"
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

// licence checks that a fresh box shows its clock everywhere, and what came of
// activating it.
func (b *bake) licence(p builder.Published, m builder.Manifest, activation string) {
	b.t.Helper()
	l := m.LicenceClock
	if !l.Evaluation || l.Activation != activation || l.Doubt != "" || l.Activated != (activation == "activated") {
		b.t.Errorf("manifest: %+v, said by the guest: %+v", l, l.Guest)
	}
	if !strings.Contains(p.Licence, l.String()) || !strings.Contains(b.stderr.String(), "licence: "+p.Licence) {
		b.t.Errorf("published %q, on standard error:\n%s", p.Licence, b.stderr.String())
	}
}

// agesOut moves wbox's clock: a build that was up to date is none any more, and
// says why before a machine starts.
func (b *bake) agesOut(after time.Duration, args ...string) {
	b.t.Helper()
	run := func(host cli.Host) int {
		b.stderr.Reset()
		all := append([]string{"build", "--store", b.store, "--iso", b.iso, "-o", b.out}, b.selection...)
		return cli.MainOn(context.Background(), host, append(all, args...), nil, &b.stdout, &b.stderr)
	}
	if code := run(cli.Host{}); code != 0 || !strings.Contains(b.stderr.String(), "up to date") {
		b.t.Errorf("today: exit code %d\n%s", code, b.stderr.String())
	}
	later := cli.Host{Clock: func() time.Time { return time.Now().Add(after) }}
	if code := run(later); code != 2 || !strings.Contains(b.stderr.String(), "its activation grace ends") {
		b.t.Errorf("%v later: exit code %d\n%s", after, code, b.stderr.String())
	}
}
