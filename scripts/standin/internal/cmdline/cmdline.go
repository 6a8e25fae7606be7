// Package cmdline takes a line apart as cmd.exe and the C run time of a Windows
// program do: commands joined by &, && and ||, redirections to NUL, quoting.
//
// It knows what remote commands use and refuses the rest (pipes, files,
// variables of cmd.exe), since running something else than was asked would be
// worse than an error. It must not import anything of ours.
package cmdline

import (
	"fmt"
	"strings"
)

// Command is one command of a line.
type Command struct {
	After string   // what joins it to the one before: "", "&", "&&" or "||"
	Args  []string // the program and its arguments, without quotes
	Raw   string   // the text as written, without redirections
	Null  string   // which streams go to NUL: "", "1", "2" or "12"
	Merge bool     // standard error goes to standard output
}

// Parse takes a line apart. The error says what is not known.
func Parse(line string) ([]Command, error) {
	var commands []Command
	after := ""
	for {
		text, op, rest, err := cut(line)
		if err != nil {
			return nil, err
		}
		command, err := parseOne(text)
		if err != nil {
			return nil, err
		}
		command.After = after
		if len(command.Args) > 0 {
			commands = append(commands, command)
		} else if op != "" || after == "&&" || after == "||" {
			return nil, fmt.Errorf("%q: a command is missing beside %s", line, op+after)
		}
		if op == "" {
			return commands, nil
		}
		after, line = op, rest
	}
}

// cut splits off the first command, at an operator outside of quotes.
func cut(line string) (text, op, rest string, err error) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '^':
			i++ // the next character stands for itself
		case c == '%':
			return "", "", "", fmt.Errorf("%q: variables of cmd.exe are not known", line)
		case c == '&' && strings.HasPrefix(line[i:], "&&"), c == '|' && strings.HasPrefix(line[i:], "||"):
			return line[:i], line[i : i+2], line[i+2:], nil
		case c == '&' && i > 0 && line[i-1] == '>': // 2>&1
		case c == '&':
			return line[:i], "&", line[i+1:], nil
		case c == '|':
			return "", "", "", fmt.Errorf("%q: pipes are not known", line)
		}
	}
	return line, "", "", nil
}

// parseOne takes off redirections and splits the rest into arguments.
func parseOne(text string) (Command, error) {
	var c Command
	plain, quoted := &strings.Builder{}, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '"':
			quoted = !quoted
			plain.WriteByte(ch)
		case quoted:
			plain.WriteByte(ch)
		case ch == '^' && i+1 < len(text):
			i++
			plain.WriteByte(text[i])
		case ch == '<':
			return c, fmt.Errorf("%q: input from files is not known", text)
		case ch == '>':
			used, err := c.redirect(plain, text[i:])
			if err != nil {
				return c, err
			}
			i += used - 1
		default:
			plain.WriteByte(ch)
		}
	}
	c.Raw = strings.TrimSpace(plain.String())
	c.Args = Split(c.Raw)
	return c, nil
}

// redirect reads a redirection at the start of text and returns its length. A
// digit right before it, already in plain, is the stream's number.
func (c *Command) redirect(plain *strings.Builder, text string) (int, error) {
	stream := "1"
	before := plain.String()
	if n := len(before); n > 0 && (before[n-1] == '1' || before[n-1] == '2') && (n == 1 || before[n-2] == ' ') {
		stream = before[n-1:]
		plain.Reset()
		plain.WriteString(before[:n-1])
	}
	used := 1
	if strings.HasPrefix(text, ">>") {
		used = 2
	}
	if stream == "2" && strings.HasPrefix(text[used:], "&1") {
		c.Merge = true
		return used + 2, nil
	}
	target := strings.TrimLeft(text[used:], " ")
	used = len(text) - len(target)
	if len(target) >= 3 && strings.EqualFold(target[:3], "nul") && (len(target) == 3 || target[3] == ' ' || target[3] == '>') {
		c.Null += stream
		return used + 3, nil
	}
	return 0, fmt.Errorf("%q: output to anything but NUL is not known", text)
}

// Split splits a command line into arguments by the rules of Microsoft's C run
// time ("Parsing C command-line arguments"): backslashes are ordinary but before
// a quotation mark, where two stand for one.
func Split(line string) []string {
	var args []string
	for i := 0; ; {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		if i == len(line) {
			return args
		}
		var arg []byte
		quoted := false
		for ; i < len(line) && (quoted || (line[i] != ' ' && line[i] != '\t')); i++ {
			switch line[i] {
			case '\\':
				n := 1
				for i+n < len(line) && line[i+n] == '\\' {
					n++
				}
				if i+n < len(line) && line[i+n] == '"' {
					arg = append(arg, strings.Repeat(`\`, n/2)...)
					if n%2 == 1 {
						arg = append(arg, '"')
						i++
					}
				} else {
					arg = append(arg, line[i:i+n]...)
				}
				i += n - 1
			case '"':
				if quoted && i+1 < len(line) && line[i+1] == '"' {
					arg = append(arg, '"')
					i++
					continue
				}
				quoted = !quoted
			default:
				arg = append(arg, line[i])
			}
		}
		args = append(args, string(arg))
	}
}
