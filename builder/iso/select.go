package iso

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Select chooses the edition to install: release is "2019", "2022" or "2025",
// kind is Core or Desktop. Datacenter comes before Standard, evaluation and
// volume media are treated alike. The *fault.Problem of class Input names the
// editions that are inside and the flags that would pick one.
func (m Media) Select(release, kind string) (Edition, error) {
	var fitting []Edition // in release and kind
	for _, e := range m.Editions {
		if _, ok := e.rank(); ok && e.Release() == release && e.Kind() == kind {
			fitting = append(fitting, e)
		}
	}
	usable := slices.DeleteFunc(slices.Clone(fitting), func(e Edition) bool { return e.Arch != "amd64" })
	if len(usable) > 0 {
		return slices.MinFunc(usable, func(a, b Edition) int {
			left, _ := a.rank()
			right, _ := b.rank()
			if left != right {
				return left - right
			}
			return a.Index - b.Index
		}), nil
	}
	why := fmt.Sprintf("it has no Windows Server %s %s edition", release, kind)
	if len(fitting) > 0 {
		why = fmt.Sprintf("its Windows Server %s %s edition isn't for amd64, the only processor that Kubernetes has Windows nodes for", release, kind)
	}
	return Edition{}, problem(m.Path, why+"; inside: "+m.inside(), m.remedy(), nil)
}

// inside lists the editions for people.
func (m Media) inside() string {
	if len(m.Editions) == 0 {
		return "none"
	}
	lines := make([]string, len(m.Editions))
	for i, e := range m.Editions {
		lines[i] = e.String()
	}
	return strings.Join(lines, ", ")
}

// remedy names the flags that would pick what is inside.
func (m Media) remedy() string {
	var flags []string
	for _, e := range m.Editions {
		if _, ok := e.rank(); !ok || e.Arch != "amd64" || e.Release() == "" {
			continue
		}
		f := "--windows " + e.Release() + " --edition " + e.Kind()
		if !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	if len(flags) == 0 {
		return "give an ISO of Windows Server 2019, 2022 or 2025 for x64"
	}
	return "ask for what it has (" + strings.Join(flags, ", ") + "), or give another ISO"
}

func problem(path, why, fix string, err error) *fault.Problem {
	return &fault.Problem{Class: fault.Input, Field: "--iso", Value: path, Why: why, Fix: fix, Err: err}
}
