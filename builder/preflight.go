package builder

import (
	"context"
	"fmt"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/capacity"
	"github.com/wbox-dev/wbox/builder/internal/engine"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/stage"
)

// Capacity measures what this host has left. A field that is nil measures for
// real; an error means unknown, and what is unknown is not checked.
type Capacity struct {
	// Disk returns the bytes that are free on the file system of a folder,
	// which may not exist yet, and a text that is the same for two folders on
	// the same one.
	Disk func(dir string) (free int64, volume string, err error)
	// Memory returns bytes: what programs can get, 0 where unknown, and all.
	Memory func() (available, total int64, err error)
}

func (c Capacity) disk(dir string) (free int64, volume string, err error) {
	if c.Disk != nil {
		return c.Disk(dir)
	}
	s, err := capacity.Disk(dir)
	return s.Free, s.Volume, err
}

func (c Capacity) memory() (available, total int64, err error) {
	if c.Memory != nil {
		return c.Memory()
	}
	m, err := capacity.RAM()
	return m.Available, m.Total, err
}

func needsVM(s stage.Stage) bool {
	n, ok := s.(stage.Needer)
	return ok && n.Needs().VM
}

// Preflight refuses a build for which this host has too little disk or memory,
// as one *fault.Preflight of Problems of class fault.Host that name the folder,
// what is needed and what is there. What is in the store already needs nothing.
// It refuses a box that could not be published, as a Problem of class
// fault.Usage.
func (b *Builder) Preflight(ctx context.Context, r *Resolved) error {
	_, err := b.preflight(ctx, r)
	return err
}

// preflight is Preflight; it returns how long each stage that would run is
// expected to take, where such a one was measured here.
func (b *Builder) preflight(ctx context.Context, r *Resolved) (expected map[string]time.Duration, err error) {
	e := &engine.Engine{Store: b.store, Sink: report.Discard}
	planned, err := e.Plan(ctx, pipeline(r, b.host(ctx, r)))
	if err != nil {
		return nil, err
	}
	runs := false
	for _, p := range planned {
		runs = runs || p.Status == engine.Miss || p.Status == engine.Always
	}
	if !runs {
		return nil, nil
	}
	x, err := b.explain(r, e, planned)
	if err != nil {
		return nil, err
	}
	return x.expected(), fault.Check(checkVersion(ctx, r, planned), x.Check())
}

// expected is how long stages are expected to take, by name.
func (x *Explanation) expected() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, s := range x.Stages {
		if s.Explain != nil && s.Explain.Cost.TimeMeasured {
			out[s.Stage] = time.Duration(s.Explain.Cost.Seconds * float64(time.Second))
		}
	}
	return out
}

// Check compares what is needed with what is there: see Preflight.
func (x *Explanation) Check() error {
	return fault.Check(append(checkDisk(x.Disk, x.Total.DiskMeasured), checkMemory(x.Memory))...)
}

// checkDisk compares, folder by folder; folders on the same file system share
// its room.
func checkDisk(needs []Need, measured bool) []error {
	var errs []error
	onVolume := map[string]int64{}
	for _, n := range needs {
		if n.volume != "" {
			onVolume[n.volume] += n.Bytes
		}
	}
	told := map[string]bool{}
	for _, n := range needs {
		all := onVolume[n.volume]
		if n.volume == "" || n.Bytes == 0 || n.Free >= all || told[n.volume] {
			continue
		}
		told[n.volume] = true
		about := "about "
		if measured {
			about = ""
		}
		why := fmt.Sprintf("this build needs %s%s there and %s is free", about, report.Bytes(all), report.Bytes(n.Free))
		if all > n.Bytes {
			why = fmt.Sprintf("this build needs %s%s on its file system, %s of it for the output folder, and %s is free",
				about, report.Bytes(all), report.Bytes(all-n.Bytes), report.Bytes(n.Free))
		}
		fix := "make room (wbox cache prune), or name a folder on a larger disk with --store or WBOX_STORE"
		if n.Flag == "-o" {
			fix = "make room, or name a folder on a larger disk with -o"
		}
		errs = append(errs, &fault.Problem{Class: fault.Host, Field: n.Flag, Value: n.Folder, Why: why, Fix: fix})
	}
	return errs
}

func checkMemory(m MemoryNeed) error {
	p := &fault.Problem{Class: fault.Host, Field: "memory", Value: report.Bytes(m.Bytes)}
	switch {
	case m.Bytes == 0:
		return nil
	case m.Total > 0 && m.Total < m.Bytes:
		p.Why = fmt.Sprintf("is what the machine gets, and this host has %s in all", report.Bytes(m.Total))
		p.Fix = "give the machine less with --memory"
	case m.Available > 0 && m.Available < m.Bytes:
		p.Why = fmt.Sprintf("is what the machine gets, and %s of this host's %s is free", report.Bytes(m.Available), report.Bytes(m.Total))
		p.Fix = "end other programs, or give the machine less with --memory"
	default:
		return nil
	}
	return p
}
