package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/wbox-dev/wbox/builder/box"
	"github.com/wbox-dev/wbox/builder/spec"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print wbox's version", Args: noArgs, Example: "  wbox version --format json",
		RunE: func(*cobra.Command, []string) error {
			if a.format == "json" {
				return json.NewEncoder(a.out).Encode(map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(a.out, "wbox %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func (a *app) docsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "docs DIR", Short: "Write the reference of all commands as Markdown, and the JSON schema of box files", Args: exactArgs(1, "a folder"), Example: "  wbox docs reference",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making the folder: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenMarkdownTree(root, args[0]); err != nil {
				return fmt.Errorf("writing the reference: %w", err)
			}
			if err := os.WriteFile(filepath.Join(args[0], "wbox.schema.json"), []byte(spec.Schema()), 0o644); err != nil { //nolint:gosec // for everybody
				return fmt.Errorf("writing the schema: %w", err)
			}
			_, err := fmt.Fprintln(a.out, filepath.Join(args[0], "wbox.md"))
			return err
		},
	}
}

func (a *app) boxCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "box", Short: "Look at boxes", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	check := &cobra.Command{
		Use: "check FILE", Short: "Read a whole box and check it", Args: exactArgs(1, "one box file"),
		Example: "  wbox box check out/wbox-ws2022-calico-1.37.2.0-libvirt.box",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := box.Check(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.format == "json" {
				return json.NewEncoder(a.out).Encode(r)
			}
			_, err = fmt.Fprintf(a.out, "%s: a good %s box, %d GiB\n", args[0], r.Provider, r.VirtualGiB)
			return err
		},
	}
	cmd.AddCommand(check)
	return cmd
}

// shellQuote quotes a path for a POSIX shell where that is needed.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r < 128 && (strings.ContainsRune("/._-+:@%=,", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
