package stage

import (
	"testing"

	"github.com/wbox-dev/wbox/builder/report"
)

func TestWorkGivesOnlyWhatWasDeclared(t *testing.T) {
	w := NewWork(map[string]string{"disk": "/in/disk"}, map[string]string{"box": "/out/box"}, "/scratch", "/run", report.Discard)
	if w.In("disk") != "/in/disk" || w.Out("box") != "/out/box" || w.Scratch != "/scratch" || w.RunDir != "/run" {
		t.Errorf("got %s, %s, %s, %s", w.In("disk"), w.Out("box"), w.Scratch, w.RunDir)
	}
	for name, get := range map[string]func(){
		"an output as input": func() { w.In("box") },
		"an input as output": func() { w.Out("disk") },
		"no such input":      func() { w.In("iso") },
		"no name":            func() { w.Out("") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: an undeclared name gave a path", name)
				}
			}()
			get()
		}()
	}
}

func TestWorkKeepsFactsAndReportsProgress(t *testing.T) {
	var got []report.Event
	w := NewWork(nil, nil, "", "", report.SinkFunc(func(e report.Event) { got = append(got, e) }))
	w.Fact("boots", 1)
	w.Fact("boots", 2)
	if f := w.Facts(); len(f) != 1 || f["boots"] != 2 {
		t.Errorf("facts %v", f)
	}
	w.Progress("%d of %s", 3, "four")
	if len(got) != 1 || got[0].Kind != report.StageProgress || got[0].Message != "3 of four" {
		t.Errorf("events %+v", got)
	}
}

func TestInputs(t *testing.T) {
	if in := FromStage("disk", "windows", "disk"); in.Name != "disk" || in.From != "windows" || in.Output != "disk" || in.Digest != "" || in.Path != "" {
		t.Errorf("from a stage: %+v", in)
	}
	if in := Locked("iso", "sha256:1", "/a.iso"); in.Name != "iso" || in.Digest != "sha256:1" || in.Path != "/a.iso" || in.From != "" {
		t.Errorf("locked: %+v", in)
	}
}
