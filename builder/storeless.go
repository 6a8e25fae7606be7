package builder

import (
	"context"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/builder/spec"
)

// CheckWithoutStore checks what can be checked of a Spec where the store can't
// be opened, so that its user learns of everything at once: the values, the
// medium's file and, unless only a plan is wanted, the output folder and this
// host. It returns a *fault.Preflight, or nil.
func CheckWithoutStore(ctx context.Context, s *spec.Spec, opts Options, planOnly bool) error {
	s.Default()
	if opts.Sink == nil {
		opts.Sink = report.Discard
	}
	errs := []error{s.Validate()}
	if s.K8s != "" {
		_, err := kube.Parse(s.K8s, kube.Options{Base: s.K8sBase, Version: s.K8sVersion})
		errs = append(errs, err)
	}
	if s.ISO != "" && !strings.Contains(s.ISO, "://") {
		m, err := iso.Inspect(ctx, s.ISO)
		if err == nil {
			_, err = m.Select(s.Windows, s.Edition)
		}
		errs = append(errs, err)
	}
	if !planOnly {
		errs = append(errs, (&Builder{opts: opts}).probe(ctx, &Resolved{Spec: s}), checkOutput(s.Output))
	}
	return fault.Check(errs...)
}
