// Command wbox bakes golden Windows boxes for Kubernetes.
package main

import (
	"os"

	"github.com/wbox-dev/wbox/cmd/wbox/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Signals(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
