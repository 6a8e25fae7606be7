package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder"
)

const lockExample = `  # pin what wbox.yaml in this folder asks for
  wbox lock

  # is it current? Nothing is written
  wbox lock --frozen

  # in CI: fail where anything is not as pinned
  wbox build --frozen`

func (a *app) lockCommand() *cobra.Command {
	sel := &selection{}
	cmd := &cobra.Command{
		Use:     "lock",
		Short:   "Pin every input of a build by digest",
		Long:    "Lock writes wbox.lock: what the selection's names stand for today, by digest. It prints the lock's path.\n" + selectionHelp,
		Example: lockExample,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.lock(cmd, sel) },
	}
	selectionFlags(cmd.Flags(), sel)
	networkFlags(cmd.Flags(), sel)
	machineFlags(cmd.Flags(), sel)
	frozenFlag(cmd.Flags(), sel)
	a.isoFlags(cmd.Flags())
	return cmd
}

func (a *app) lock(cmd *cobra.Command, sel *selection) error {
	_, r, err := a.resolve(cmd, sel, builder.ResolveOptions{PlanOnly: true, Download: true})
	if err != nil {
		return err
	}
	if err := r.Lock.Write(cmd.Context()); err != nil {
		return err
	}
	switch {
	case r.Lock.Stale():
		a.printChanges(r.Lock, r.Lock.Path+" was stale and is updated:")
	case r.Lock.Exists:
		a.hint("up to date")
	}
	if a.format == "json" {
		return json.NewEncoder(a.out).Encode(map[string]any{"lock": r.Lock.Path, "changed": !r.Lock.Exists || r.Lock.Stale()})
	}
	_, err = fmt.Fprintln(a.out, r.Lock.Path)
	return err
}

// updateLock makes the lock current before a build.
func (a *app) updateLock(cmd *cobra.Command, l *builder.Lock) error {
	if err := l.Write(cmd.Context()); err != nil {
		return err
	}
	if l.Stale() {
		a.printChanges(l, l.Path+" was stale and is updated (--frozen makes this an error):")
	}
	return nil
}
