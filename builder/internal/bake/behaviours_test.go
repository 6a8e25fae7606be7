package bake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder/guest"
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
)

func isShutdown(request string) bool { return strings.HasPrefix(request, "shutdown.exe /s") }
func isScript(request string) bool {
	return strings.HasPrefix(request, "run ") && !strings.Contains(request, readyScript)
}

// When a bake survives a behaviour: never; where it begins as the guest is to
// turn off; unless it begins at a script.
func never(string) bool              { return false }
func butScripts(request string) bool { return !isScript(request) }

func says(texts ...string) func(string) []string    { return func(string) []string { return texts } }
func warns(text string) func(request string) string { return scriptsOnly(text) }

// scriptsOnly: elsewhere nothing is lost that would be worth a warning.
func scriptsOnly(text string) func(string) string {
	return func(request string) string {
		if isScript(request) {
			return text
		}
		return ""
	}
}

// saysOrStaysOn: a guest that does not hear that it is to turn off stays on.
func saysOrStaysOn(texts ...string) func(string) []string {
	return func(request string) []string {
		if isShutdown(request) {
			return []string{"waiting for the guest to turn off", "limit 10m0s"}
		}
		return texts
	}
}

// behaviours are the ways in which a guest may misbehave from any request on.
// The limits are those of Limits, of which half an hour is the longest.
func behaviours() []behaviour {
	const longest = 30 * time.Minute
	// Ten minutes; a request that nobody answers hides it for two, once or twice.
	const standstill = 13 * time.Minute
	list := []behaviour{
		{name: "is mute but works on", do: silent, fine: never, texts: saysOrStaysOn("limit"), limit: longest},
		{name: "is mute and stands still", fine: never, texts: saysOrStaysOn("nothing moves any more", "limit 10m0s"), limit: standstill,
			do: func(ctx context.Context, r string, w io.Writer) error { wardOf(ctx).sleep(); return silent(ctx, r, w) }},
		{name: "goes to sleep and answers nobody", fine: never, texts: says("limit"), limit: standstill,
			do: func(ctx context.Context, _ string, _ io.Writer) error {
				wardOf(ctx).sleep()
				return errors.New("no route to host")
			}},
		{name: "times every command out", do: timeout, fine: never, texts: saysOrStaysOn("no answer within 50s", "limit"), limit: longest + time.Minute},
		{name: "times one command out", do: timeout, once: true, limit: 4 * time.Minute, warns: warns("did not answer for a while")},
		{name: "is slow but alive", limit: time.Hour,
			do: func(context.Context, string, io.Writer) error { time.Sleep(100 * time.Second); return nil }},
		{name: "turns itself off", once: true, fine: isShutdown, texts: says("the machine is off"), limit: 10 * time.Second,
			do: func(ctx context.Context, _ string, _ io.Writer) error {
				wardOf(ctx).guest.TurnOff()
				return guestfake.ErrConnection()
			}},
		{name: "refuses the account", fine: never, texts: says("wrong password"), limit: 10 * time.Second,
			do: func(context.Context, string, io.Writer) error {
				return fmt.Errorf("wrong password: %w", guest.ErrRefused)
			}},
		{name: "is a stranger after a while", fine: never, texts: says("a stranger answers"), limit: 10 * time.Second,
			do: func(context.Context, string, io.Writer) error {
				return fmt.Errorf("a stranger answers: %w", guest.ErrRefused)
			}},
	}
	return append(append(list, interruptions()...), nonsense()...)
}

// timeout is WinRM that is up but gets nothing done.
func timeout(ctx context.Context, _ string, _ io.Writer) error {
	select {
	case <-ctx.Done():
		return &guest.Unknown{Err: context.Cause(ctx)}
	case <-time.After(50 * time.Second):
		return &guest.Unknown{Err: errors.New("no answer within 50s")}
	}
}

// interruptions are lost connections, reboots and clocks.
func interruptions() []behaviour {
	set := func(d time.Duration) misbehaves {
		return func(ctx context.Context, _ string, _ io.Writer) error { wardOf(ctx).guest.SetClock(d); return nil }
	}
	reboot := func(ctx context.Context, _ string, _ io.Writer) error {
		wardOf(ctx).guest.Reboot()
		return guestfake.ErrConnection()
	}
	return []behaviour{
		{name: "drops the connection in mid-command", once: true, limit: 3 * time.Minute,
			warns: warns("did not answer for a while"),
			do:    func(context.Context, string, io.Writer) error { return guestfake.ErrConnection() }},
		{name: "drops the connection in every script", fine: isShutdown, texts: says("the guest was lost", "lost 3 times before"), limit: time.Minute,
			do: func(_ context.Context, request string, _ io.Writer) error {
				if isScript(request) {
					return guestfake.ErrConnection()
				}
				return nil
			}},
		{name: "reboots without being asked", do: reboot, once: true, limit: 3 * time.Minute,
			warns: warns("has rebooted by itself"), setup: func(w *ward) { w.guest.DownDials = 10 }},
		{name: "reboots again and again", do: reboot, fine: never, texts: saysOrStaysOn("reset again and again", "limit 10"), limit: 10 * time.Minute},
		{name: "has its clock set forwards", do: set(400 * 24 * time.Hour), once: true, limit: time.Minute},
		{name: "has its clock set backwards", do: set(-25 * time.Hour), once: true, limit: time.Minute},
		{name: "has its clock set all the time", do: set(-time.Hour), limit: time.Minute},
	}
}

// nonsense is what guests print that is no answer. Where the host waits it asks
// again; a script that prints it has failed.
func nonsense() []behaviour {
	prints := func(text string) misbehaves {
		return func(_ context.Context, request string, w io.Writer) error {
			if strings.HasPrefix(request, "shutdown.exe") {
				return nil
			}
			io.WriteString(w, text) //nolint:errcheck // to memory
			return guestfake.ErrAnswered
		}
	}
	const size = 9 << 20 // more than is kept
	return []behaviour{
		{name: "prints garbage", do: prints("\x00\xff\xfeSegmentation fault\r\n"), once: true, fine: butScripts, limit: time.Minute,
			texts: says("is no result line", "Segmentation fault")},
		{name: "prints nothing", do: prints(""), once: true, fine: butScripts, texts: says("no result line"), limit: time.Minute},
		{name: "prints half a result line", do: prints(`{"script":"10-a","mode":"te`), once: true, fine: butScripts, limit: time.Minute,
			texts: says("is no result line", "unexpected EOF")},
		{name: "prints another script's result line", do: prints(`{"script":"77-x","mode":"test","state":"present"}`), once: true, fine: butScripts,
			texts: says(`about "77-x"`), limit: time.Minute},
		{name: "prints very much", once: true, limit: time.Minute,
			do: func(_ context.Context, _ string, w io.Writer) error {
				io.WriteString(w, strings.Repeat("0123456789abcde\n", size/16)) //nolint:errcheck // to memory
				return nil
			}},
		{name: "prints without end", fine: never, texts: saysOrStaysOn("limit"), limit: 30 * time.Minute,
			do: func(ctx context.Context, _ string, w io.Writer) error {
				for {
					io.WriteString(w, "and on\n") //nolint:errcheck // to memory
					select {
					case <-ctx.Done():
						return &guest.Unknown{Err: context.Cause(ctx)}
					case <-time.After(10 * time.Second):
					}
				}
			}},
	}
}
