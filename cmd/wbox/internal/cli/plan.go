package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/licence"
)

const planExample = `  wbox plan --k8s v1.37.2 --cni calico --iso SERVER_EVAL_x64FRE_en-us.iso

  # why each stage would run, and what it would take
  wbox plan --explain --k8s v1.37.2 --cni calico --iso SERVER_EVAL_x64FRE_en-us.iso`

func (a *app) planCommand() *cobra.Command {
	sel := &selection{}
	explain := false
	cmd := &cobra.Command{
		Use:     "plan",
		Short:   "Print what a build would do",
		Long:    "Plan prints each stage of a build, with hit (its result is in the store), miss (it would run) or\nempty (there is nothing to do), and changes nothing.\n" + selectionHelp,
		Example: planExample,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.plan(cmd, sel, explain) },
	}
	selectionFlags(cmd.Flags(), sel)
	networkFlags(cmd.Flags(), sel)
	licenceFlags(cmd.Flags(), sel)
	machineFlags(cmd.Flags(), sel)
	frozenFlag(cmd.Flags(), sel)
	a.isoFlags(cmd.Flags())
	cmd.Flags().BoolVar(&explain, "explain", false, "say why each stage would run, and what disk and time that takes")
	return cmd
}

// planned is the JSON form of a plan.
type planned struct {
	Name         string             `json:"name"`
	Version      string             `json:"version"`
	Kubernetes   string             `json:"kubernetes"`
	Windows      string             `json:"windows"`
	ISO          string             `json:"iso"`
	StandIn      bool               `json:"standIn"`
	GuestScripts string             `json:"guestScripts"`
	Licence      string             `json:"licence,omitempty"`
	LicenceClock *licence.Record    `json:"licenceClock,omitempty"` // of the Windows in the store that a build starts from
	Stages       []builder.PlanLine `json:"stages"`
	Medium       string             `json:"mediumToDownload,omitempty"` // where it is not here yet
	*explained                      // with --explain
}

func (a *app) plan(cmd *cobra.Command, sel *selection, explain bool) error {
	b, r, err := a.resolve(cmd, sel, builder.ResolveOptions{PlanOnly: true, Pending: true})
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if r.Lock != nil && r.Lock.Stale() {
		a.printChanges(r.Lock, r.Lock.Path+" is stale; a build updates it (--frozen makes this an error):")
	}
	p := planned{Name: r.BoxName, Version: r.Version, Kubernetes: r.Ref.Version, Windows: r.Edition.Name, ISO: r.ISODigest,
		StandIn: r.Media.StandIn != nil, GuestScripts: r.GuestScripts(), Licence: r.LicenceText(), LicenceClock: r.Clock()}
	p.Medium, _ = r.Pending()
	if explain {
		p.Stages, p.explained, err = explainPlan(ctx, b, r)
	} else {
		p.Stages, err = b.Plan(ctx, r)
	}
	if err != nil {
		return err
	}
	if a.format == "json" {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(p)
	}
	return a.printPlan(p)
}

func (a *app) printPlan(p planned) error {
	fmt.Fprintf(a.out, "%s %s: Kubernetes %s on %s\n", p.Name, p.Version, p.Kubernetes, p.Windows)
	if p.Medium != "" {
		fmt.Fprintf(a.out, "medium: %s is not here yet; a build downloads it\n", p.Medium)
	}
	if p.StandIn {
		fmt.Fprintf(a.out, "guest scripts: %s, on a stand-in for Windows\n", scriptsText(p.GuestScripts))
	}
	if p.Licence != "" {
		fmt.Fprintf(a.out, "licence: %s\n", p.Licence)
	}
	for i, line := range planTable(p.Stages) {
		fmt.Fprintln(a.out, line)
		if x := p.Stages[i].Explain; x != nil {
			fmt.Fprint(a.out, explainText(x))
		}
	}
	if p.explained != nil {
		a.printTotal(p.explained)
	}
	return nil
}

// planTable returns one line for each stage, in columns.
func planTable(stages []builder.PlanLine) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range stages {
		key := "-"
		if l.Key != "" {
			key = builder.ShortDigest(l.Key)
		}
		text := l.Title
		if l.Why != "" && (l.Status != "miss" || l.Aged) {
			text += ": " + l.Why
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Stage, l.Status, key, text)
	}
	w.Flush() //nolint:errcheck // into memory
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func scriptsText(s string) string {
	if s == "powershell" {
		return "executed in PowerShell"
	}
	return s
}
