package programs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// shutdown knows /r, /s, /a with /t, /f, /c, /d and /hybrid-less forms; both
// "/" and "-" lead a switch. /a without a shutdown in progress is error 1116
// (ERROR_NO_SHUTDOWN_IN_PROGRESS), a wrong switch prints the help and returns 1.
func shutdown(_ context.Context, env *Env, args []string) Result {
	const noShutdown = 1116
	action := ""
	delay := 30 * time.Second // the documented default of /t
	for i := 0; i < len(args); i++ {
		if len(args[i]) < 2 || (args[i][0] != '/' && args[i][0] != '-') {
			return unknown("shutdown", args[i])
		}
		value := func() (string, bool) {
			i++
			if i >= len(args) {
				return "", false
			}
			return args[i], true
		}
		switch strings.ToLower(args[i][1:]) {
		case "r", "s", "a":
			if action != "" {
				return unknown("shutdown", args[i])
			}
			action = strings.ToLower(args[i][1:])
		case "f":
		case "t":
			v, ok := value()
			seconds, err := strconv.Atoi(v)
			if !ok || err != nil || seconds < 0 || seconds > 315360000 {
				return unknown("shutdown", "/t "+v)
			}
			delay = time.Duration(seconds) * time.Second
		case "c":
			if v, ok := value(); !ok || len(v) > 512 {
				return unknown("shutdown", "/c")
			}
		case "d":
			if v, ok := value(); !ok || !validReason(v) {
				return unknown("shutdown", "/d "+v)
			}
		default:
			return unknown("shutdown", args[i])
		}
	}
	switch action {
	case "a":
		if !env.Machine.AbortRestart() {
			return Result{Exit: noShutdown, Stderr: fmt.Sprintf("Unable to abort the system shutdown because no shutdown was in progress.(%d)\r\n", noShutdown)}
		}
	case "r", "s":
		env.Machine.Restart(delay, action == "s")
	default:
		return unknown("shutdown", strings.Join(args, " "))
	}
	return Result{}
}

// validReason knows [p|u:]xx:yy: major up to 255, minor up to 65535.
func validReason(s string) bool {
	s = strings.ToLower(s)
	s = strings.TrimPrefix(strings.TrimPrefix(s, "p:"), "u:")
	major, minor, ok := strings.Cut(s, ":")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return ok && err == nil && err2 == nil && a >= 0 && a < 256 && b >= 0 && b < 65536
}
