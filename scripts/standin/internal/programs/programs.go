// Package programs answers for programs of Windows that are not there: a table
// of what each prints and returns, with a source per row, over the state that
// the stand-in really keeps.
//
// A program or a switch that is not in the table is an error, as it would be for
// the real program: an answer that nobody looked up proves nothing. The package
// must not import the agent.
package programs

import (
	"context"
	"fmt"
	"strings"

	"github.com/wbox-dev/wbox/scripts/standin/internal/machine"
	"github.com/wbox-dev/wbox/scripts/standin/internal/state"
)

// Env is what programs work on.
type Env struct {
	State   *state.Store
	Machine machine.Machine
	C       string // the folder that plays C:
	User    string // who runs the program
}

// Result is what a program printed and returned.
type Result struct {
	Exit   int
	Stdout string
	Stderr string
}

// Program is one row of the table.
type Program struct {
	Name   string // in lower case, without ".exe"
	Source string // where its output and exit codes are documented
	Run    func(ctx context.Context, env *Env, args []string) Result
}

// Table returns all rows.
func Table() []Program {
	return []Program{
		{"hostname", "Microsoft's reference of Windows commands: hostname", hostname},
		{"shutdown", "Microsoft's reference of Windows commands: shutdown; errors: System Error Codes", shutdown},
		{"whoami", "Microsoft's reference of Windows commands: whoami", whoami},
	}
}

// NotFound is the exit code of cmd.exe for a program that does not exist.
const NotFound = 9009

// Run runs a program by its name or path.
func Run(ctx context.Context, env *Env, program string, args []string) Result {
	name := Name(program)
	for _, p := range Table() {
		if p.Name == name {
			return p.Run(ctx, env, args)
		}
	}
	return Result{Exit: NotFound, Stderr: fmt.Sprintf("'%s' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n", program)}
}

// Name returns a program's row: its base name in lower case without ".exe",
// for a path only where that leads into System32.
func Name(program string) string {
	name := strings.ToLower(strings.ReplaceAll(program, "/", `\`))
	if at := strings.LastIndex(name, `\`); at >= 0 {
		if dir := name[:at]; dir != `c:\windows\system32` && dir != `c:\windows` {
			return name
		}
		name = name[at+1:]
	}
	return strings.TrimSuffix(name, ".exe")
}

// unknown is the answer to a switch that the table does not know.
func unknown(program, arg string) Result {
	return Result{Exit: 1, Stderr: fmt.Sprintf("%s: the stand-in does not know %q\r\n", program, arg)}
}

func hostname(_ context.Context, env *Env, args []string) Result {
	if len(args) > 0 {
		return Result{Exit: 1, Stderr: "sethostname: Use the Network Control Panel Applet to set hostname.\r\nhostname -s is not supported.\r\n"}
	}
	return Result{Stdout: env.State.Get().ComputerName + "\r\n"}
}

func whoami(_ context.Context, env *Env, args []string) Result {
	if len(args) > 0 {
		return unknown("whoami", args[0])
	}
	return Result{Stdout: strings.ToLower(env.State.Get().ComputerName+`\`+env.User) + "\r\n"}
}
