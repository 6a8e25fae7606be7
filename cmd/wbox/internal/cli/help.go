package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is how wide the help may be: the terminal is not asked, so that the
// text is the same everywhere.
const helpWidth = "80"

// helpCommands replaces what cobra brings along: there, a command that doesn't
// exist is no error. The usage of all commands is wrapped.
func (a *app) helpCommands(root *cobra.Command) {
	root.SetOut(a.out) // before the completion command, which takes it over
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped "+helpWidth+" "))
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command", Example: "  wbox help box check",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if err := noArgs(about, rest); err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = noArgs
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
