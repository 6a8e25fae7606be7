// Command wbox bakes golden Windows boxes for Kubernetes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/wbox-dev/wbox/cmd/wbox/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	// In "wbox build 2>&1 | tee log", Ctrl-C ends tee as well. What is printed
	// after that is lost, but must not end the cleanup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
