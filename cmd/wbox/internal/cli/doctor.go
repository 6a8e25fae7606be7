package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor/qemu"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what works on this host", Args: noArgs, Example: "  wbox doctor",
		Long: "Doctor looks at this host with the checks that a build makes, and some more, and says what works here and\n" +
			"how to mend what doesn't. It tries out hardware acceleration with a small guest, which takes seconds.\n" +
			"The exit code is 4 if nothing can be baked here.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	store, err := a.storeDir()
	if err != nil {
		return err
	}
	d, err := builder.Doctor(ctx, builder.DoctorOptions{Store: store, Driver: qemu.New(qemu.Options{})})
	if err != nil {
		return err
	}
	if a.format == "json" {
		err = a.printJSON(d)
	} else {
		err = a.printDiagnosis(d)
	}
	if err != nil || d.CanBake {
		return err
	}
	return &fault.Problem{Class: fault.Host, Field: "wbox doctor", Why: "nothing can be baked on this host", Fix: "see what is missing above"}
}

func (a *app) printDiagnosis(d *builder.Diagnosis) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, c := range d.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", c.Fix)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "works here:")
	for _, x := range d.Abilities {
		yes, why := "no ", x.Why
		if x.Works {
			yes = "yes"
		}
		if why != "" {
			why = " (" + why + ")"
		}
		if _, err := fmt.Fprintf(a.out, "  %s  %s%s\n", yes, x.What, why); err != nil {
			return err
		}
	}
	return nil
}
