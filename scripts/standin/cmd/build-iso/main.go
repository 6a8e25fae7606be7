// Command build-iso makes the stand-in's installation medium.
//
// It runs on a Debian host, needs no root, and prints nothing but errors. It
// must not be imported, and wbox itself must not run it: a stand-in is for tests
// and demonstrations.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/wbox-dev/wbox/scripts/standin/media"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build-iso:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var opts media.Options
	flags := flag.NewFlagSet("build-iso", flag.ExitOnError)
	out := flags.String("o", "", "the ISO to write; without it the path of a cached one is printed")
	flags.StringVar(&opts.Release, "release", "2022", "the Windows Server to play: 2022 or 2025")
	flags.StringVar(&opts.PowerShell, "pwsh", os.Getenv("WBOX_PWSH"), "PowerShell 7 for Linux, a folder or an archive; empty for none (WBOX_PWSH)")
	flags.StringVar(&opts.Containerd, "containerd", "", "a folder with Debian's containerd and ctr, such as /usr/bin, for images in a box; needs -pwsh")
	flags.StringVar(&opts.Cache, "cache", "", "where the kernel package and finished media are kept (WBOX_STANDIN_CACHE)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *out != "" {
		return media.Build(ctx, opts, *out)
	}
	path, err := media.Cached(ctx, opts)
	if err != nil {
		return err
	}
	_, err = fmt.Println(path)
	return err
}
