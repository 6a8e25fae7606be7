package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/media"
)

// isoFlags are the flags of all commands that may download an installation
// medium.
func (a *app) isoFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.acceptEULA, "accept-eula", false, "accept the licence of the Windows medium that is downloaded")
	f.StringVar(&a.isoBase, "iso-base-url", os.Getenv("WBOX_ISO_BASE_URL"), "where evaluation media are downloaded from, a mirror of "+media.Host+" (env WBOX_ISO_BASE_URL)")
}

// mediaOptions say how media are come by in this invocation.
func (a *app) mediaOptions() (media.Options, error) {
	o := media.Options{BaseURL: a.isoBase, Offline: a.offline, Sink: a.display}
	if own := os.Getenv(tableEnv); own != "" {
		var err error
		if o.Table, err = media.ReadTable(own, tableEnv); err != nil {
			return o, err
		}
	}
	switch {
	case a.acceptEULA:
		o.Licence = func(context.Context, media.Entry) (string, error) { return "--accept-eula", nil }
	case isTerminal(a.in) && isTerminal(a.err):
		o.Licence, o.Asks = a.askLicence, true
	}
	return o, nil
}

// tableEnv names a table of media that takes the place of ours.
const tableEnv = "WBOX_ISO_TABLE"

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// askLicence asks the person at the terminal. The end of ctx ends the wait.
func (a *app) askLicence(ctx context.Context, e media.Entry) (string, error) {
	a.hint("%s (%s) is under %s.", e.Name, media.Bytes(e.Size), e.Licence)
	a.hint("The licence is at %s", e.Page)
	a.hint("To accept it and to download the medium, type yes and press Enter:")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(a.in, 100)).ReadString('\n') // no answer is a no
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line := <-answer:
		if strings.EqualFold(strings.TrimSpace(line), "yes") || strings.EqualFold(strings.TrimSpace(line), "y") {
			return "in a terminal", nil
		}
		return "", nil
	}
}

const isoExample = `  # what is known, and what is in the store
  wbox iso ls

  # put an ISO that you have into the store: builds find it there
  wbox iso add SERVER_EVAL_x64FRE_en-us.iso

  # download the evaluation medium of Windows Server 2022 from Microsoft
  wbox iso fetch windows-server-2022-eval --accept-eula`

func (a *app) isoCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "iso", Short: "Windows installation media: list, add, fetch", Args: noArgs, Example: isoExample,
		Long: "Iso is about the media that Windows is installed from. The environment variable " + tableEnv + " names a JSON\nfile with media of your own, which takes the place of the built-in table.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	ls := &cobra.Command{Use: "ls", Short: "List the media that are known, and those in the store", Args: noArgs, Example: "  wbox iso ls --format json",
		RunE: func(*cobra.Command, []string) error { return a.isoList() }}
	var name string
	add := &cobra.Command{Use: "add FILE", Short: "Copy an ISO into the store", Args: exactArgs(1, "one ISO file"),
		Long:    "Add copies an ISO into the store, where builds find it without --iso. It is known by its SHA-256.",
		Example: "  wbox iso add SERVER_EVAL_x64FRE_en-us.iso",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.isoPut(func(l *media.Library) (media.Item, error) { return l.Add(cmd.Context(), args[0], name) })
		}}
	add.Flags().StringVar(&name, "name", "", "what to call it (default: its known name, else the file's)")
	fetch := &cobra.Command{Use: "fetch NAME", Short: "Download a known medium into the store", Args: exactArgs(1, "the name of one known medium (see wbox iso ls)"),
		Long: "Fetch downloads an evaluation medium from Microsoft and compares its SHA-256. A download that was cut\n" +
			"goes on where it ended. The medium's licence is accepted once: in a terminal you are asked, elsewhere\nwith --accept-eula.",
		Example: "  wbox iso fetch windows-server-2022-eval --accept-eula",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.isoPut(func(l *media.Library) (media.Item, error) { return l.Fetch(cmd.Context(), args[0]) })
		}}
	a.isoFlags(fetch.Flags())
	cmd.AddCommand(ls, add, fetch)
	return cmd
}

func (a *app) library() (*media.Library, error) {
	store, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	o, err := a.mediaOptions()
	if err != nil {
		return nil, err
	}
	return media.Open(store, o)
}

// isoPut brings a medium into the store and prints what it is.
func (a *app) isoPut(put func(*media.Library) (media.Item, error)) error {
	l, err := a.library()
	if err != nil {
		return err
	}
	it, err := put(l)
	if err != nil {
		return err
	}
	if a.format == "json" {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		return enc.Encode(it)
	}
	if it.Media.StandIn != nil {
		a.hint("it is a stand-in: builds take it only with --iso %s", shellQuote(it.Media.Path))
	}
	for _, e := range it.Media.Editions {
		a.hint("  %s", e)
	}
	_, err = fmt.Fprintf(a.out, "%s %s\n", it.Name, it.Digest)
	return err
}

func (a *app) isoList() error {
	l, err := a.library()
	if err != nil {
		return err
	}
	rows, err := l.List()
	if err != nil {
		return err
	}
	if a.format == "json" {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tWINDOWS\tVERSION\tEDITIONS\tSIZE\tSHA-256\tSTATE")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, orDash(r.Release), orDash(r.Version), orDash(strings.Join(r.Editions, ",")),
			media.Bytes(r.Size), builder.ShortDigest(r.Digest), isoState(r))
	}
	return w.Flush()
}

func isoState(r media.Row) string {
	switch {
	case r.StandIn:
		return "in the store, a stand-in"
	case r.InStore:
		return "in the store"
	case r.URL == "":
		return "to be downloaded by hand: " + r.Page
	case r.Accepted != nil:
		return "can be fetched, licence accepted " + r.Accepted.Format("2006-01-02")
	}
	return "can be fetched"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
