package agent

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf16"

	"github.com/wbox-dev/wbox/scripts/standin/internal/fallback"
	"github.com/wbox-dev/wbox/scripts/standin/internal/pshost"
)

// badArguments is what Windows PowerShell returns for arguments that it does not
// know (0xFFFD0000).
const badArguments = -196608

// powershell runs powershell.exe with arguments.
func (a *Agent) powershell(ctx context.Context, user string, args []string, s Streams) int {
	req, err := parsePowerShell(args)
	if err != nil {
		fmt.Fprintf(s.Stderr, "powershell.exe: %v\r\n", err)
		return badArguments
	}
	req.User = user
	if exit, instead := a.misbehave(ctx, req, s); instead {
		return exit
	}
	if a.Host != nil {
		return a.inPowerShell(ctx, req, s)
	}
	return a.answer(ctx, req, s)
}

// inPowerShell runs a request there; what keeps it from running is told on
// standard error.
func (a *Agent) inPowerShell(ctx context.Context, req pshost.Request, s Streams) int {
	exit, err := a.Host.Run(ctx, req, s.Stdout, s.Stderr)
	if err != nil {
		fmt.Fprintf(s.Stderr, "stand-in: %v\r\n", err)
		return 1
	}
	return exit
}

// parsePowerShell reads powershell.exe's arguments; its switches may be
// abbreviated ("powershell.exe -?").
func parsePowerShell(args []string) (pshost.Request, error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if len(word) < 2 || (word[0] != '-' && word[0] != '/') {
			return pshost.Request{Kind: "command", Text: strings.Join(args[i:], " ")}, nil
		}
		rest := args[i+1:]
		switch name := strings.ToLower(word[1:]); {
		case abbreviates(name, "noprofile", 3), abbreviates(name, "noninteractive", 3), abbreviates(name, "nologo", 3), name == "mta", name == "sta":
		case abbreviates(name, "executionpolicy", 2), name == "ep", abbreviates(name, "outputformat", 1), abbreviates(name, "inputformat", 1), abbreviates(name, "windowstyle", 1), abbreviates(name, "version", 1):
			if len(rest) == 0 {
				return pshost.Request{}, fmt.Errorf("%s has no value", word)
			}
			i++
		case abbreviates(name, "encodedcommand", 1), name == "ec":
			if len(rest) != 1 {
				return pshost.Request{}, fmt.Errorf("%s has %d values", word, len(rest))
			}
			text, err := decodeCommand(rest[0])
			return pshost.Request{Kind: "command", Text: text}, err
		case abbreviates(name, "command", 1):
			if len(rest) == 0 {
				return pshost.Request{}, fmt.Errorf("%s has no value", word)
			}
			return pshost.Request{Kind: "command", Text: strings.Join(rest, " ")}, nil
		case abbreviates(name, "file", 1):
			if len(rest) == 0 {
				return pshost.Request{}, fmt.Errorf("%s has no value", word)
			}
			return pshost.Request{Kind: "file", Text: rest[0], Args: rest[1:]}, nil
		default:
			return pshost.Request{}, fmt.Errorf("the stand-in does not know %s", word)
		}
	}
	return pshost.Request{}, errors.New("nothing to run; the stand-in has no prompt")
}

// abbreviates says whether name is the start of full, of at least n letters.
func abbreviates(name, full string, n int) bool {
	return len(name) >= n && strings.HasPrefix(full, name)
}

// decodeCommand decodes base64 of UTF-16LE.
func decodeCommand(s string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(raw)%2 != 0 {
		return "", errors.New("the encoded command is not base64 of UTF-16")
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

// scriptCall finds the script in the command that the answer file runs.
var scriptCall = regexp.MustCompile(`Invoke-WboxScript\.ps1.*-Name\s+(\d\d-[a-z][a-z0-9-]*)\s+-Mode\s+(test|set)\b`)

// answer answers without PowerShell for requests that say what they are: by the
// first line of the bootstrap, or by the call of a script.
func (a *Agent) answer(ctx context.Context, req pshost.Request, s Streams) int {
	first, _, _ := strings.Cut(req.Text, "\n")
	words := strings.Fields(strings.TrimSpace(first))
	switch {
	case len(words) == 5 && strings.HasPrefix(first, "# wbox: run "):
		return a.answerScript(ctx, words[3], words[4], s)
	case strings.TrimSpace(first) == "# wbox: boot-time":
		boot, err := a.Machine.BootTime()
		if err != nil {
			fmt.Fprintf(s.Stderr, "%v\r\n", err)
			return 1
		}
		fmt.Fprintf(s.Stdout, "%s\r\n", boot.UTC().Format("2006-01-02T15:04:05.0000000Z"))
		return 0
	case strings.HasPrefix(first, "# wbox: read "):
		return a.answerRead(strings.TrimSpace(strings.TrimPrefix(first, "# wbox: read ")), s)
	}
	if m := scriptCall.FindStringSubmatch(req.Text); m != nil {
		return a.answerScript(ctx, m[1], m[2], s)
	}
	fmt.Fprintf(s.Stderr, "stand-in: without PowerShell only known requests are answered, not %.100q\r\n", first)
	return 1
}

func (a *Agent) answerScript(ctx context.Context, name, mode string, s Streams) int {
	seed, err := a.Seed(ctx)
	if err != nil {
		fmt.Fprintf(s.Stderr, "%v\r\n", err)
		return 1
	}
	line, exit := fallback.Run(ctx, a.fallbackEnv(seed), name, mode)
	fmt.Fprintf(s.Stdout, "%s\r\n", line)
	return exit
}

// answerRead prints a text file; one that does not exist is nothing.
func (a *Agent) answerRead(path string, s Streams) int {
	real, err := a.winPath(path)
	if err != nil {
		return 0
	}
	data, err := os.ReadFile(real)
	if err != nil {
		return 0
	}
	s.Stdout.Write(data) //nolint:errcheck // the reader is gone
	return 0
}
