package faulttest

import (
	"errors"
	"os"
	"time"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/cli"
)

// Set in the environment of a child that plays wbox on fake machines.
const (
	layoutEnv  = "WBOX_FAULT_LAYOUT"  // the image that an installation makes
	journalEnv = "WBOX_FAULT_JOURNAL" // see machines
)

// Child plays wbox, with the arguments of this process, where it was started
// to do so; it does not return then.
func Child() {
	layout := os.Getenv(layoutEnv)
	if layout == "" {
		return
	}
	m := &machines{Layout: layout, Journal: os.Getenv(journalEnv)}
	unknown := errors.New("unknown")
	host := cli.Host{Poll: 2 * time.Millisecond, Clock: clock, Capacity: builder.Capacity{ // what is short shows when it has run out
		Disk:   func(string) (int64, string, error) { return 0, "", unknown },
		Memory: func() (int64, int64, error) { return 0, 0, unknown },
	}}
	host.Driver, host.Dial = m.driver()
	os.Exit(cli.MainOn(cli.Signals(), host, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// clock stands still, since a box tells when its Windows was installed: the
// same build gives the same bytes.
func clock() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }
