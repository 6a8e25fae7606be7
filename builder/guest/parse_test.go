package guest

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestDecodeCLIXML(t *testing.T) {
	const head = "#< CLIXML\r\n<Objs Version=\"1.1.0.1\" xmlns=\"http://schemas.microsoft.com/powershell/2004/04\">"
	for name, c := range map[string]struct{ in, want string }{
		"plain":    {"just text\r\n", "just text\r\n"},
		"error":    {head + `<S S="Error">no such thing_x000D__x000A_</S><S S="Error">at line 1_x000D__x000A_</S></Objs>`, "no such thing\nat line 1\n"},
		"progress": {head + `<Obj S="progress" RefId="0"><TN RefId="0"><T>x</T></TN><MS><S N="Activity">Preparing</S></MS></Obj></Objs>`, ""},
		"mixed":    {"before\n" + head + `<S S="Error">a &lt;b&gt;</S></Objs>` + "\r\nafter", "before\na <b>after"},
		"twice":    {head + `<S S="Error">a</S></Objs>` + head + `<S S="warning">b</S></Objs>`, "ab"},
		"cut off":  {head + `<S S="Error">a`, head + `<S S="Error">a`},
		"no XML":   {"#< CLIXML but not really", "#< CLIXML but not really"},
	} {
		if got := decodeCLIXML([]byte(c.in)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func FuzzDecodeCLIXML(f *testing.F) {
	f.Add([]byte("#< CLIXML\r\n<Objs><S S=\"Error\">a_x000A_</S></Objs>"))
	f.Add([]byte("x#< CLIXML<Objs/>#< CLIXML"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := decodeCLIXML(data)
		if !strings.Contains(string(data), clixmlMark) && got != string(data) {
			t.Errorf("text without a mark was changed to %q", got)
		}
	})
}

func FuzzParseOutcome(f *testing.F) {
	f.Add([]byte("x\r\n{\"script\":\"20-a-b\",\"mode\":\"set\",\"state\":\"present\",\"reboot\":false,\"message\":\"\",\"facts\":{}}\r\n"), 0)
	f.Add([]byte(`{"script":"20-a-b","mode":"set","state":"absent","reboot":true}`), 3010)
	f.Add([]byte("{}"), 1)
	f.Fuzz(func(t *testing.T, data []byte, exit int) {
		o, err := parseOutcome(data, "20-a-b", Set, exit)
		if err != nil {
			return
		}
		if o.Script != "20-a-b" || o.Mode != Set || (o.State == Failed) != (exit != 0 && exit != exitReboot) || o.Reboot != (exit == exitReboot) && o.State != Failed {
			t.Errorf("exit %d gave %+v", exit, o)
		}
	})
}

// TestBootstraps: every request fits a command line, in pure ASCII, and begins
// with its comment.
func TestBootstraps(t *testing.T) {
	for want, make := range map[string]func() (request, string){
		"# wbox: run 20-install-features set": func() (request, string) { return runRequest("20-install-features", Set) },
		"# wbox: boot-time":                   bootTimeRequest,
		`# wbox: read C:\it's`:                func() (request, string) { return readRequest(`C:\it's`, 1<<20) },
	} {
		r, script := make()
		first, rest, _ := strings.Cut(script, "\n")
		if first != want || "# wbox: "+string(r) != want {
			t.Errorf("the first line is %q, want %q", first, want)
		}
		if strings.ContainsFunc(script, func(r rune) bool { return r > '~' }) {
			t.Errorf("%s is not ASCII", want)
		}
		if strings.Contains(rest, "it's") {
			t.Errorf("a quote is not doubled in %q", rest)
		}
		line, err := powershell(script)
		if err != nil || len(line) > 4000 {
			t.Errorf("%s: %d characters, %v", want, len(line), err)
		}
		_, encoded, _ := strings.Cut(line, "-EncodedCommand ")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(raw) != 2*len(script) || raw[0] != '#' || raw[1] != 0 {
			t.Errorf("%s: the encoding is not UTF-16LE: %v", want, err)
		}
	}
	if _, err := powershell(strings.Repeat("x", 3000)); err == nil {
		t.Error("a bootstrap that does not fit was taken")
	}
}

func TestTail(t *testing.T) {
	tl := &tail{max: 5}
	for _, s := range []string{"ab", "", "cde", "f", "ghijklmnop", "q"} {
		if n, err := tl.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("Write(%q): %d, %v", s, n, err)
		}
	}
	if string(tl.buf) != "mnopq" {
		t.Errorf("kept %q", tl.buf)
	}
}
