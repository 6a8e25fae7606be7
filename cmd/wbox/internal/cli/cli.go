// Package cli is the command line: one file a command. It reads flags, calls
// the builder and renders; it decides nothing about boxes. Standard output
// carries only the result, everything else goes to standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/ui"
)

// version is set by the linker; it is what "wbox version" prints.
var version = "dev"

// app is one invocation: the streams and the global flags.
type app struct {
	host     Host
	in       io.Reader
	out, err io.Writer

	store    string
	format   string
	progress string
	color    string
	verbose  bool
	offline  bool

	kubeBaseURL string

	keepOnFailure bool // of wbox build

	acceptEULA bool // see isoFlags
	isoBase    string

	display *ui.Display // nil until the global flags were read
	end     func()      // takes the display off the screen; as display
}

// Main runs the command line and returns the exit code: 0 done, 1 failed, 2
// wrong use, 3 an input was refused, 4 this machine lacks something, 5 the
// guest failed, 6 busy, 7 network, 130 interrupted. A failure that kept a machine
// until the user ended that is still the failure: see fault.Standing.
func Main(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	return MainOn(ctx, Host{}, args, in, out, errw)
}

// MainOn is Main for builds on another host.
func MainOn(ctx context.Context, host Host, args []string, in io.Reader, out, errw io.Writer) int {
	stdout := &result{w: out}
	a := &app{host: host, in: in, out: stdout, err: errw}
	started := time.Now()
	root := a.root()
	a.helpCommands(root)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	if lost := stdout.lost(); lost != nil && (err == nil || errors.Is(lost, err)) {
		err = lost // told as what it is, whoever noticed
	}
	if a.display != nil {
		a.end()
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && !fault.Stands(err):
		return ui.Interrupted(errw, time.Since(started))
	}
	return ui.PrintError(errw, err)
}

const rootLong = `wbox turns a Kubernetes version and a Windows Server ISO into ready-to-boot
golden boxes, with the kubelet.exe and kube-proxy.exe of exactly that version
inside.

Exit codes: 0 done or up to date, 1 failed, 2 wrong use or invalid
configuration, 3 an input was not found or refused, 4 this machine lacks
something, 5 the guest or its proof failed, 6 another build holds it,
7 network, 130 interrupted.`

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "wbox",
		Short:                      "Bake golden Windows boxes for Kubernetes",
		Long:                       rootLong,
		SilenceUsage:               true,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return a.begin(cmd.Context()) },
		Args:                       noArgs,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := cmd.PersistentFlags()
	f.StringVar(&a.store, "store", "", "folder of results (default: wbox in the user's cache folder; env WBOX_STORE)")
	f.StringVar(&a.format, "format", "text", "form of the result on standard output: text or json")
	f.StringVar(&a.progress, "progress", string(ui.Auto), "progress on standard error: auto, plain, json or none")
	f.StringVar(&a.color, "color", string(ui.ColorAuto), "colours on standard error: auto, always or never; auto heeds NO_COLOR")
	f.BoolVar(&a.offline, "offline", false, "don't use the network: what is not on this machine is an error")
	f.StringVar(&a.kubeBaseURL, "kube-base-url", os.Getenv("WBOX_KUBE_BASE_URL"), "where releases and CI builds of Kubernetes are published (default "+kube.DefaultBaseURL+"; env WBOX_KUBE_BASE_URL)")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "more detail on standard error")
	cmd.SetFlagErrorFunc(flagError)
	cmd.AddCommand(a.buildCommand(), a.planCommand(), a.lockCommand(), a.bundleCommand(), a.kubeCommand(), a.imagesCommand(), a.isoCommand(), a.boxCommand(), a.cacheCommand(), a.doctorCommand(), a.versionCommand(), a.docsCommand())
	return cmd
}

// begin checks the global flags and opens the display.
func (a *app) begin(ctx context.Context) error {
	if a.format != "text" && a.format != "json" {
		return &fault.Problem{Class: fault.Usage, Field: "--format", Value: a.format, Why: "is not known", Fix: "use text or json"}
	}
	d, err := ui.New(ui.Options{Progress: ui.Progress(a.progress), Color: ui.Color(a.color), Verbose: a.verbose, Err: a.err, Getenv: os.Getenv})
	if err != nil {
		return err
	}
	a.display = d
	forget := context.AfterFunc(ctx, d.Stopping)
	a.end = func() { forget(); d.Close() }
	return nil
}

// noArgs refuses arguments, naming what was given; cobra's own check has no
// exit code of ours.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	p := &fault.Problem{Class: fault.Usage, Field: cmd.CommandPath(), Value: args[0], Why: "is not a command or argument of it",
		Fix: "see " + cmd.CommandPath() + " --help"}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		p.Fix = "did you mean " + near[0] + "? See " + cmd.CommandPath() + " --help"
	}
	return p
}

// flagError words what pflag found wrong; for a flag that isn't there it names
// the nearest that is.
func flagError(cmd *cobra.Command, err error) error {
	p := &fault.Problem{Class: fault.Usage, Field: cmd.CommandPath(), Err: err, Fix: "see " + cmd.CommandPath() + " --help"}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := spec.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			p.Fix = "did you mean --" + near + "? See " + cmd.CommandPath() + " --help"
		}
	}
	return p
}

// exactArgs wants n arguments, described by what.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return &fault.Problem{Class: fault.Usage, Field: cmd.CommandPath(), Why: fmt.Sprintf("takes %s, got %d arguments", what, len(args)),
			Fix: "see " + cmd.CommandPath() + " --help"}
	}
}

// storeDir is where results are kept.
func (a *app) storeDir() (string, error) {
	for _, dir := range []string{a.store, os.Getenv("WBOX_STORE")} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &fault.Problem{Class: fault.Host, Field: "--store", Why: "no cache folder is known here", Err: err,
			Fix: "name a folder with --store or WBOX_STORE"}
	}
	return filepath.Join(cache, "wbox"), nil
}

// hint prints a line for people that is not part of the result.
func (a *app) hint(format string, args ...any) { a.display.Say(format, args...) }
