package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wbox-dev/wbox/builder/component"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/kube"
)

// kubeFlags are what the kube commands are asked for.
type kubeFlags struct {
	opts         kube.Options
	output       string
	reproducible bool
}

const kubeLong = `Kube looks at and gets the programs of Kubernetes alone, without a box. X is what
--k8s takes:

  v1.37.2, 1.37.2               a release, compiled from its Go module
  1.37, stable, stable-1.37,    what such a marker of the releases names, as it was
  latest, release/v1.37.2       published
  ci/latest, ci/latest-1.37,    a CI build, as it was published; where a marker's build
  ci/v1.38.0-alpha.1.5+0123abc  is not complete, the newest that is
  master, release-1.37,         a branch, a commit or a pull request of Kubernetes,
  0123abcdef, pull/12345        compiled
  git:REPOSITORY@REF            any ref of any repository, compiled
  ./kubernetes                  a source tree as it is, changes included, compiled
  ./bin, https://HOST/DIR       programs that are there already

The repository of refs that name none is ` + kube.DefaultGitURL + `
(env WBOX_KUBE_GIT_URL names another).`

func (a *app) kubeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "kube", Short: "Look at and get the programs of Kubernetes alone", Long: kubeLong, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.kubeResolveCommand(), a.kubeGetCommand(false), a.kubeGetCommand(true))
	return cmd
}

func (a *app) kubeResolveCommand() *cobra.Command {
	k := &kubeFlags{}
	cmd := &cobra.Command{
		Use: "resolve X", Short: "Print what a version, ref or place stands for",
		Long:    "Resolve prints version, commit, where each file would come from and its digest, and of a marker how old\nit is. It compiles nothing.",
		Example: "  wbox kube resolve ci/latest\n  wbox kube resolve pull/12345 --format json",
		Args:    exactArgs(1, "one version, ref or place"),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, ref, err := a.resolveKube(cmd, k, args[0])
			if err != nil {
				return err
			}
			return a.printDescription(kube.Describe(args[0], src, ref))
		},
	}
	k.register(cmd)
	return cmd
}

func (a *app) kubeGetCommand(compile bool) *cobra.Command {
	k := &kubeFlags{}
	cmd := &cobra.Command{
		Use: "fetch X", Short: "Get programs that are ready: published ones, or those of a folder or URL",
		Long:    "Fetch puts the programs into a folder, verified. It compiles nothing; a plain version is taken as it was published.\nIt prints the folder.",
		Example: "  wbox kube fetch ci/latest -o bin\n  wbox build --k8s ./bin --iso SERVER_EVAL_x64FRE_en-us.iso",
		Args:    exactArgs(1, "one version or place"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.getKube(cmd, k, args[0], compile) },
	}
	if compile {
		cmd.Use, cmd.Short = "build X", "Compile the programs of a version, ref or source tree"
		cmd.Long = "Build compiles the programs for Windows and puts them into a folder, verified. What was compiled once is not compiled\nagain. It prints the folder."
		cmd.Example = "  wbox kube build ./kubernetes -o bin\n  wbox kube build pull/12345 --linux\n  wbox kube build v1.37.2 --verify-reproducible"
		cmd.Args = exactArgs(1, "one version, ref or source tree")
		cmd.Flags().BoolVar(&k.reproducible, "verify-reproducible", false, "compile a second time, in another folder and with an empty cache, and compare")
	} else {
		k.opts.Prefer = kube.Prebuilt
	}
	cmd.Flags().StringVarP(&k.output, "output", "o", "bin", "folder for the programs")
	k.register(cmd)
	return cmd
}

func (k *kubeFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&k.opts.Linux, "linux", false, "also kubelet, kubeadm and kubectl for linux/amd64, of the same ref")
	f.BoolVar(&k.opts.Debug, "debug", false, "compile without optimisation and with symbols, as the official DBG=1 does")
	f.StringVar(&k.opts.Base, "k8s-base", "", "the version that programs missing from a folder come from")
	f.StringVar(&k.opts.Version, "k8s-version", "", "the version, where it can't be found out")
}

// kubeSettings fills in what the user set for all commands.
func (a *app) kubeSettings(o kube.Options) (kube.Options, error) {
	store, err := a.storeDir()
	o.CacheDir, o.BaseURL, o.GitURL = filepath.Join(store, "kube"), a.kubeBaseURL, os.Getenv("WBOX_KUBE_GIT_URL")
	o.Offline = a.offline
	return o, err
}

// componentSettings are the settings of the sources of CNI and containerd: what
// holds for Kubernetes', with a repository of each project's own.
func componentSettings(o kube.Options) component.Options {
	urls := map[string]string{}
	for _, project := range []string{component.Antrea, component.Calico, component.Containerd} {
		urls[project] = os.Getenv("WBOX_" + strings.ToUpper(project) + "_GIT_URL")
	}
	return component.Options{CacheDir: o.CacheDir, Go: o.Go, Env: o.Env, GitURLs: urls, RetryPause: o.RetryPause, Parallel: o.Parallel}
}

func (a *app) resolveKube(cmd *cobra.Command, k *kubeFlags, text string) (src kube.Source, ref kube.Ref, err error) {
	if k.opts, err = a.kubeSettings(k.opts); err != nil {
		return nil, ref, err
	}
	if src, err = kube.Parse(text, k.opts); err != nil {
		return nil, ref, err
	}
	ref, err = src.Resolve(cmd.Context(), a.display)
	return src, ref, err
}

// gotKube is the JSON form of what fetch and build did.
type gotKube struct {
	Folder       string        `json:"folder"`
	Fresh        bool          `json:"fresh"`                  // made now, not taken from the store
	Reproducible *bool         `json:"reproducible,omitempty"` // where it was asked for
	Ref          kube.Ref      `json:"ref"`
	Binaries     []kube.Binary `json:"binaries"`
}

func (a *app) getKube(cmd *cobra.Command, k *kubeFlags, text string, compile bool) error {
	ctx := cmd.Context()
	src, ref, err := a.resolveKube(cmd, k, text)
	if err != nil {
		return err
	}
	if isCompiled := ref.Toolchain != ""; isCompiled != compile {
		p := &fault.Problem{Class: fault.Input, Field: "wbox kube fetch", Value: text, Why: "has to be compiled", Fix: "use wbox kube build"}
		if compile {
			p.Field, p.Why, p.Fix = "wbox kube build", "is ready, so there is nothing to compile", "use wbox kube fetch, or give a version (v1.37.2) or a git ref"
		}
		return p
	}
	bits, fresh, err := kube.Get(ctx, src, ref, k.opts, k.output, a.display)
	if err != nil {
		return err
	}
	got := gotKube{Folder: k.output, Fresh: fresh, Ref: bits.Ref, Binaries: bits.Binaries}
	if k.reproducible {
		if err := kube.VerifyReproducible(ctx, text, ref, bits, k.opts, a.display); err != nil {
			return err
		}
		yes := true
		got.Reproducible = &yes
		a.hint("reproducible: compiled again in another folder with an empty cache, every byte is the same")
	}
	if !fresh {
		a.hint("up to date: %s was made before", ref.Version)
	}
	a.hint("to use it: wbox build --k8s %s", shellQuote(asPath(k.output)))
	if a.format == "json" {
		return json.NewEncoder(a.out).Encode(got)
	}
	_, err = fmt.Fprintln(a.out, k.output)
	return err
}

// asPath writes a folder so that it can't be taken for anything else.
func asPath(dir string) string {
	if filepath.IsAbs(dir) || !fs.ValidPath(filepath.ToSlash(dir)) || dir == "." {
		return dir
	}
	return "./" + filepath.ToSlash(dir)
}

func (a *app) printDescription(d kube.Description) error {
	if a.format == "json" {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	rows := [][2]string{{"source", d.Source}, {"version", d.Version}, {"commit", d.Commit}, {"date", d.BuildDate}, {"tree", d.TreeState}, {"toolchain", d.Toolchain}}
	if m := d.Marker; m != nil {
		text := m.URL + " says " + m.Version
		if m.Modified != nil {
			text += ", moved " + ageText(time.Duration(m.AgeSeconds)*time.Second) + " ago"
		}
		rows = append(rows, [2]string{"marker", text})
	}
	var errs []error
	for _, r := range rows {
		if r[1] != "" {
			_, err := fmt.Fprintf(w, "%s\t%s\n", r[0], r[1])
			errs = append(errs, err)
		}
	}
	for _, f := range d.Files {
		_, err := fmt.Fprintf(w, "%s\t%s\n", f.File, f.From)
		if f.Digest != "" {
			_, err = fmt.Fprintf(w, "%s\t%s\n\t%s\n", f.File, f.From, f.Digest)
		}
		errs = append(errs, err)
	}
	errs = append(errs, w.Flush())
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}

// ageText is a duration as people say it.
func ageText(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}
