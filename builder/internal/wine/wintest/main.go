// Command wintest runs the unit tests of this module as Windows programs under
// wine. What wine can't run is listed with its reason in excluded.txt; all else
// runs, so a new package is tested without being named anywhere. It must not be
// linked into wbox.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/wbox-dev/wbox/builder/internal/wine"
)

func main() {
	prefix := flag.String("prefix", ".cache/wine", "the folder that wine keeps its files in")
	verbose := flag.Bool("v", false, "print what every test prints")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, *prefix, flag.Args(), *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wintest:", err)
		os.Exit(4) //nolint:gocritic // nothing is left to stop
	}
	if !ok {
		os.Exit(1)
	}
}

// run tests the packages that the patterns match, all of this module by
// default, and says whether all passed. An error means that it couldn't begin.
func run(ctx context.Context, prefixDir string, patterns []string, verbose bool) (bool, error) {
	if _, err := wine.Find(); err != nil {
		return false, fmt.Errorf("%w: `scripts/dev/setup.sh windows` installs it on Debian and Ubuntu (100 MB, unpacked 700 MB)", err)
	}
	list, err := exclusions(excluded)
	if err != nil {
		return false, err
	}
	pkgs, err := packages(ctx, patterns)
	if err != nil {
		return false, err
	}
	prefix, err := wine.Open(ctx, prefixDir)
	if err != nil {
		return false, err
	}
	work, err := os.MkdirTemp("", "wintest-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)

	overlay, err := writeOverlay(ctx, work)
	if err != nil {
		return false, err
	}
	began := time.Now()
	var passed, failed int
	var mu sync.Mutex // of the counts and of the terminal
	var running sync.WaitGroup
	slots := make(chan struct{}, max(2, runtime.NumCPU()))
	for _, p := range pkgs {
		if list.whole(p.path) {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			res := test(ctx, prefix, work, overlay, p, list.tests(p.path))
			mu.Lock()
			defer mu.Unlock()
			res.print(os.Stdout, verbose)
			if res.err != nil {
				failed++
				return
			}
			passed++
		})
	}
	running.Wait()
	for _, e := range list {
		fmt.Printf("left out\t%s\n", e)
	}
	fmt.Printf("%d packages passed, %d failed in %.0f s; %s says what is left out\n", passed, failed, time.Since(began).Seconds(), listName)
	return failed == 0, ctx.Err()
}

// result is what came of one package.
type result struct {
	path   string
	took   time.Duration
	output string
	err    error
	second string   // pattern of tests that failed and then passed alone
	cured  []string // tests that are left out and pass
}

func (r result) print(w *os.File, verbose bool) {
	word := "ok"
	if r.err != nil {
		word = "FAIL"
	}
	if r.err != nil || verbose {
		fmt.Fprintln(w, strings.TrimRight(r.output, "\n"))
	}
	fmt.Fprintf(w, "%s\t%s\t%.1fs\n", word, r.path, r.took.Seconds())
	if r.err != nil {
		fmt.Fprintf(w, "\t%v\n", r.err)
	}
	if r.second != "" {
		fmt.Fprintf(w, "\tpassed at the second try only: %s\n", r.second)
	}
	for _, name := range r.cured {
		fmt.Fprintf(w, "\t%s passes now: take its line out of %s\n", name, listName)
	}
}
