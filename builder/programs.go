package builder

import (
	"context"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/lock"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
	"github.com/wbox-dev/wbox/builder/stages/componentbits"
)

// What the inputs of a CNI and of the container runtime begin with in a lock
// and in a manifest.
const (
	cniPrefix     = "cni"
	runtimePrefix = "containerd"
)

// programs are those of a CNI or of the container runtime, resolved.
type programs struct {
	project string
	source  component.Source // nil: none are installed
	ref     component.Ref
}

// resolve finds out what the text of a flag stands for. A text that can't be
// meant was refused already. A commit holds where the text names a ref of git.
func (p *programs) resolve(ctx context.Context, parse func(string) (component.Request, error), text, commit string, opts component.Options, sink report.Sink) error {
	request, err := parse(text)
	if text == "" || err != nil {
		return nil
	}
	if request.Form == component.Git && commit != "" {
		request.Ref = commit
	}
	src, err := request.Source(opts)
	if err != nil || src == nil {
		return err
	}
	ref, err := src.Resolve(ctx, sink)
	if err != nil {
		return err
	}
	*p = programs{project: request.Project, source: src, ref: ref}
	return nil
}

// stage returns the stage that gets the programs, nil where there are none.
func (p programs) stage(name string) stage.Stage {
	if p.source == nil {
		return nil
	}
	return componentbits.New(name, p.project, p.source, p.ref)
}

// input is the folder of programs as a layer takes it, nil where there are none.
func (p programs) input(name, from string) *stage.Input {
	if p.source == nil {
		return nil
	}
	in := stage.FromStage(name, from, componentbits.Output)
	return &in
}

// pin adds what the programs were resolved to.
func (p programs) pin(prefix string, resolved map[string]string, inputs map[string]lock.Input) {
	if p.source == nil {
		return
	}
	resolved[prefix+" version"] = p.ref.Version
	resolved[prefix+" commit"] = p.ref.Commit
	resolved[prefix+" date"] = p.ref.BuildDate
	resolved[prefix+" toolchain"] = p.ref.Toolchain
	for name, digest := range p.ref.Inputs {
		if name != ourFlags {
			inputs[prefix+" "+name] = lock.Input{Digest: digest, Source: p.ref.Source}
		}
	}
}

// commit is the commit that a lock holds, where nothing may change.
func (p Pins) commit(prefix string, pinned *lock.Lock) string {
	if p.Frozen && pinned != nil {
		return pinned.Resolved[prefix+" commit"]
	}
	return ""
}

// withoutNil leaves out the stages that there are none of.
func withoutNil(stages ...stage.Stage) []stage.Stage {
	var out []stage.Stage
	for _, s := range stages {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}
