package agent

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/wbox-dev/wbox/scripts/standin/internal/cmdline"
	"github.com/wbox-dev/wbox/scripts/standin/internal/programs"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
)

// Streams are where a command reads and writes.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Run runs a command line as cmd.exe would and returns its exit code. It is
// what WinRM's command shell calls.
func (a *Agent) Run(ctx context.Context, user, line string, stdin io.Reader, stdout, stderr io.Writer) int {
	exit, _ := a.runLine(ctx, user, line, Streams{stdin, stdout, stderr})
	return exit
}

// runLine also says whether the line ended its shell.
func (a *Agent) runLine(ctx context.Context, user, line string, s Streams) (exit int, left bool) {
	commands, err := cmdline.Parse(line)
	if err != nil {
		fmt.Fprintf(s.Stderr, "stand-in: %v\r\n", err)
		return 1, false
	}
	for _, c := range commands {
		if (c.After == "&&" && exit != 0) || (c.After == "||" && exit == 0) {
			continue
		}
		if exit, left = a.runOne(ctx, user, c, redirect(s, c)); left || ctx.Err() != nil {
			return exit, left
		}
	}
	return exit, false
}

// redirect applies a command's redirections.
func redirect(s Streams, c cmdline.Command) Streams {
	if strings.Contains(c.Null, "1") {
		s.Stdout = io.Discard
	}
	if strings.Contains(c.Null, "2") {
		s.Stderr = io.Discard
	}
	if c.Merge {
		s.Stderr = s.Stdout
	}
	return s
}

// runOne runs one command: a built-in of cmd.exe, PowerShell, or a program.
func (a *Agent) runOne(ctx context.Context, user string, c cmdline.Command, s Streams) (exit int, left bool) {
	args := c.Args[1:]
	switch name := programs.Name(c.Args[0]); name {
	case "rem":
		return 0, false
	case "echo":
		fmt.Fprintf(s.Stdout, "%s\r\n", strings.TrimPrefix(c.Raw[len("echo"):], " "))
		return 0, false
	case "ver":
		st := a.State.Get()
		fmt.Fprintf(s.Stdout, "\r\nMicrosoft Windows [Version 10.0.%d.%d]\r\n", st.Build, st.Revision)
		return 0, false
	case "exit":
		if len(args) > 0 && strings.EqualFold(args[0], "/b") {
			args = args[1:]
		}
		if len(args) == 0 {
			return 0, true
		}
		code, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			code = 0 // cmd.exe takes what is no number for 0
		}
		return int(int32(code)), true
	case "cmd":
		rest, ok := afterSwitchC(c.Raw)
		if !ok {
			fmt.Fprintf(s.Stderr, "stand-in: cmd.exe is known with /c only\r\n")
			return 1, false
		}
		exit, _ := a.runLine(ctx, user, rest, s)
		return exit, false
	case "powershell", `c:\windows\system32\windowspowershell\v1.0\powershell.exe`:
		return a.powershell(ctx, user, args, s), false
	default:
		return a.program(ctx, user, c.Args[0], args, s), false
	}
}

// program runs a program: one of the table, the stand-in's own, or one that the
// simulated Windows commands know because it changes what they show.
func (a *Agent) program(ctx context.Context, user, name string, args []string, s Streams) int {
	r := a.Program(ctx, user, name, args)
	if r.Exit == programs.NotFound && a.Host != nil {
		exit := a.inPowerShell(ctx, pshost.Request{Kind: "program", User: user, Program: name, Args: args}, s)
		if exit != programs.NotFound {
			return exit
		}
	}
	fmt.Fprint(s.Stdout, r.Stdout)
	fmt.Fprint(s.Stderr, r.Stderr)
	return r.Exit
}

// Program runs a program that this side knows. It is what PowerShell calls.
func (a *Agent) Program(ctx context.Context, user, name string, args []string) programs.Result {
	if programs.Name(name) == ownProgram {
		return a.own(ctx, args)
	}
	return programs.Run(ctx, a.programEnv(user), name, args)
}

// afterSwitchC returns the command line that cmd.exe's /c runs. Quotation marks
// around all of it go, as "cmd /?" describes.
func afterSwitchC(raw string) (string, bool) {
	words := strings.Fields(raw)
	at := -1
	for i, w := range words[1:] {
		if strings.EqualFold(w, "/c") {
			at = i + 1
			break
		}
		if !strings.EqualFold(w, "/s") && !strings.EqualFold(w, "/q") && !strings.EqualFold(w, "/d") {
			return "", false
		}
	}
	if at < 0 {
		return "", false
	}
	rest := raw
	for _, w := range words[:at+1] {
		rest = strings.TrimLeft(rest, " \t")[len(w):]
	}
	rest = strings.TrimSpace(rest)
	if len(rest) > 1 && rest[0] == '"' && rest[len(rest)-1] == '"' && (strings.Count(rest, `"`) > 2 || strings.Contains(rest, " ")) {
		rest = rest[1 : len(rest)-1]
	}
	return rest, true
}
