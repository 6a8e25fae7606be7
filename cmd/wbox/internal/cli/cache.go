package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cache", Short: "Look at the store and tidy it up", Args: noArgs, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	ls := &cobra.Command{
		Use: "ls", Short: "List what is in the store", Args: noArgs, Example: "  wbox cache ls --format json",
		Long: "Ls lists the results in the store by stage: their size, how long ago they were made and used, their\n" +
			"key, and the boxes that were made of them; then blobs and the folders of runs.",
		RunE: func(*cobra.Command, []string) error { return a.cacheList() },
	}
	verify := &cobra.Command{
		Use: "verify", Short: "Rehash what is in the store", Args: noArgs, Example: "  wbox cache verify",
		Long: "Verify rehashes every output whose digest is known, every blob, and the files whose digests are\n" +
			"remembered. Of disks it checks the size, and that the chain of disks below is there: their content has\n" +
			"no digest. What is damaged is not taken by any build from then on. The exit code is 1 if there is any.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.cacheVerify(cmd.Context()) },
	}
	cmd.AddCommand(ls, a.cachePruneCommand(), verify)
	return cmd
}

const pruneExample = `  # what was not used for a month, but for the newest result of each stage
  wbox cache prune --older-than 30d --keep-last 1

  # what would go, were the store to fit into 40 GiB
  wbox cache prune --max-size 40GiB --dry-run`

func (a *app) cachePruneCommand() *cobra.Command {
	var older, size string
	o := builder.PruneOptions{}
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove from the store what was not used for long", Args: noArgs, Example: pruneExample,
		Long: "Prune removes results, blobs, cut downloads and folders of runs: what was not used for longest first.\n" +
			"What a build uses or makes right now stays, and so does a result that another one lies on, unless that\n" +
			"goes too. Without a limit it removes what is of no use to anybody: what dead processes have left,\n" +
			"and damaged results.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.OlderThan, o.MaxSize, err = pruneLimits(older, size, o.KeepLast); err != nil {
				return err
			}
			return a.cachePrune(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&older, "older-than", "", "remove what was not used for so long, such as 30d, 2w or 12h")
	f.StringVar(&size, "max-size", "", "remove until no more is left, such as 40GiB")
	f.IntVar(&o.KeepLast, "keep-last", 0, "keep that many of the newest results of each stage, blobs and runs in any case")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would go, and remove nothing")
	return cmd
}

// pruneLimits reads the limits; all problems are reported together.
func pruneLimits(older, size string, keep int) (age time.Duration, most int64, err error) {
	var errs []error
	bad := func(flag, value, why, fix string) {
		errs = append(errs, &fault.Problem{Class: fault.Usage, Field: flag, Value: value, Why: why, Fix: fix})
	}
	most = -1
	if older != "" {
		if age, err = parseAge(older); err != nil {
			bad("--older-than", older, "is not an age", "write it as 30d, 2w or 12h")
		}
	}
	if size != "" {
		if most, err = parseSize(size); err != nil {
			bad("--max-size", size, "is not a size", "write it as 40GiB or 500MiB")
		}
	}
	if keep < 0 {
		bad("--keep-last", fmt.Sprint(keep), "is negative", "use 0 or more")
	}
	return age, most, fault.Check(errs...)
}

func (a *app) openCache() (*builder.Cache, error) {
	store, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	return builder.OpenCache(store, a.display)
}

// printJSON prints a result as JSON.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) cacheList() error {
	c, err := a.openCache()
	if err != nil {
		return err
	}
	l, err := c.List()
	if err != nil {
		return err
	}
	if a.format == "json" {
		return a.printJSON(l)
	}
	now := time.Now()
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if len(l.Results) > 0 {
		fmt.Fprintln(w, "STAGE\tSIZE\tMADE\tUSED\tKEY\tFOR")
	}
	for _, r := range l.Results {
		stage, what := r.Stage, some(r.For)
		if stage == "" {
			stage = "?"
		}
		if r.Damage != "" {
			what = "damaged: " + r.Damage
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", stage, report.Bytes(r.Size), ago(r.Made, now), ago(r.Used, now), builder.ShortDigest(r.Key), what)
	}
	if len(l.Blobs) > 0 {
		fmt.Fprintln(w, "BLOB\tSIZE\t\tUSED\tDIGEST\t")
	}
	for _, b := range l.Blobs {
		fmt.Fprintf(w, "blob\t%s\t\t%s\t%s\t\n", report.Bytes(b.Size), ago(b.Used, now), builder.ShortDigest(b.Name))
	}
	for _, o := range l.Other {
		fmt.Fprintf(w, "%s/\t%s\t\t\t\t\n", o.Name, report.Bytes(o.Size))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var runs int64
	for _, r := range l.Runs {
		runs += r.Size
	}
	fmt.Fprintf(a.out, "%d results, %d blobs, %d runs (%s of logs): %s in %s", len(l.Results), len(l.Blobs), len(l.Runs), report.Bytes(runs), report.Bytes(l.Size), l.Store)
	_, err = fmt.Fprintf(a.out, "%s\n", free(l.Free))
	return err
}

// some lists the first names.
func some(names []string) string {
	const most = 3
	switch {
	case len(names) == 0:
		return "no box"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (a *app) cachePrune(ctx context.Context, o builder.PruneOptions) error {
	c, err := a.openCache()
	if err != nil {
		return err
	}
	r, err := c.Prune(ctx, o)
	if err != nil {
		return err
	}
	if a.format == "json" {
		return a.printJSON(r)
	}
	verb := "removed"
	if o.DryRun {
		verb = "would remove"
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, x := range r.Removed {
		what, name := x.Kind, x.Name
		if x.Stage != "" {
			what = x.Stage
		}
		if x.Kind == "result" || x.Kind == "blob" {
			name = builder.ShortDigest(name)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", what, name, report.Bytes(x.Size), x.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s %d, %s; %s left\n", verb, len(r.Removed), report.Bytes(r.Freed), report.Bytes(r.Left))
	return err
}

func (a *app) cacheVerify(ctx context.Context) error {
	c, err := a.openCache()
	if err != nil {
		return err
	}
	r, err := c.Verify(ctx)
	if err != nil {
		return err
	}
	if a.format == "json" {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		for _, d := range r.Damage {
			name := d.Name
			if d.What != "file" {
				name = builder.ShortDigest(name)
			}
			fmt.Fprintf(a.out, "%s %s: %s\n", d.What, name, d.Why)
		}
		fmt.Fprintf(a.out, "%d results looked at, %s rehashed, %d damaged\n", r.Results, report.Bytes(r.Hashed), len(r.Damage))
	}
	for _, key := range r.Busy {
		a.hint("left out, since a build makes it right now: %s", builder.ShortDigest(key))
	}
	if n := len(r.Damage); n > 0 {
		return &fault.Problem{Class: fault.Failed, Field: "wbox cache verify", Why: fmt.Sprintf("%d damaged, no build takes them any more", n),
			Fix: "remove them with wbox cache prune; the next build makes them again"}
	}
	return nil
}
