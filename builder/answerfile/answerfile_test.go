package answerfile

import (
	"flag"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/golden"
)

var update = flag.Bool("update", false, "write the golden files")

// good returns values that every release takes.
func good(release string) Params {
	return Params{
		Release:   release,
		ImageName: "Windows Server " + release + " SERVERSTANDARDCORE",
		Account:   "wbox",
		Password:  "Not-A-Secret-0",
	}
}

func TestRenderGolden(t *testing.T) {
	for _, release := range Releases() {
		t.Run(release, func(t *testing.T) {
			got, err := Render(good(release))
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, *update, release+".xml", got)
		})
	}
	t.Run("all values", func(t *testing.T) {
		p := good("2022")
		p.UILanguage, p.Locale, p.TimeZone = "de-DE", "de-AT", "W. Europe Standard Time"
		p.ComputerName, p.Organization = "node-1", "Rock & Roll <Ltd>"
		p.ProductKey = "AAAAA-BBBBB-CCCCC-DDDDD-EEEEE"
		p.Account, p.Password = "o'brien & söhne", `<p>&"q"'`
		p.Commands = []string{`cmd.exe /c echo "<1>" & rem`, EnableWinRM}
		got, err := Render(p)
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, *update, "all-values.xml", got)
	})
}

func TestRenderRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*Params)
		field  string
	}{
		"unknown release":         {func(p *Params) { p.Release = "2016" }, "--windows"},
		"release with path":       {func(p *Params) { p.Release = "../x" }, "--windows"},
		"no image":                {func(p *Params) { p.ImageName = "" }, "image name"},
		"image with newline":      {func(p *Params) { p.ImageName = "a\nb" }, "image name"},
		"long image":              {func(p *Params) { p.ImageName = strings.Repeat("x", 256) }, "image name"},
		"no account":              {func(p *Params) { p.Account = "" }, "account"},
		"account of 21":           {func(p *Params) { p.Account = strings.Repeat("a", 21) }, "account"},
		"account of 11 emoji":     {func(p *Params) { p.Account = strings.Repeat("😀", 11) }, "account"},
		"account with backslash":  {func(p *Params) { p.Account = `a\b` }, "account"},
		"account with at":         {func(p *Params) { p.Account = "a@b" }, "account"},
		"account ends with dot":   {func(p *Params) { p.Account = "a." }, "account"},
		"built-in account":        {func(p *Params) { p.Account = "ADMINISTRATOR" }, "account"},
		"account of spaces":       {func(p *Params) { p.Account = "  " }, "account"},
		"no password":             {func(p *Params) { p.Password = "" }, "password"},
		"password with NUL":       {func(p *Params) { p.Password = "a\x00b" }, "password"},
		"password not UTF-8":      {func(p *Params) { p.Password = "a\xffb" }, "password"},
		"password with U+FFFE":    {func(p *Params) { p.Password = "a\uFFFEb" }, "password"},
		"password of 128":         {func(p *Params) { p.Password = strings.Repeat("p", 128) }, "password"},
		"password ends in space":  {func(p *Params) { p.Password = "abc " }, "password"},
		"computer name of 16":     {func(p *Params) { p.ComputerName = "a234567890123456" }, "computer name"},
		"computer name of digits": {func(p *Params) { p.ComputerName = "123" }, "computer name"},
		"computer name with _":    {func(p *Params) { p.ComputerName = "a_b" }, "computer name"},
		"computer name ends in -": {func(p *Params) { p.ComputerName = "ab-" }, "computer name"},
		"language":                {func(p *Params) { p.UILanguage, p.Locale = "english", "en-US" }, "UI language"},
		"locale":                  {func(p *Params) { p.Locale = "<x>" }, "locale"},
		"key":                     {func(p *Params) { p.ProductKey = "AAAAA-BBBBB" }, "product key"},
		"long command":            {func(p *Params) { p.Commands = []string{strings.Repeat("c", 1025)} }, "first logon command"},
		"empty command":           {func(p *Params) { p.Commands = []string{""} }, "first logon command"},
		"too many commands":       {func(p *Params) { p.Commands = strings.Split(strings.Repeat("c ", 101)+"c", " ") }, "first logon commands"},
		"organization too long":   {func(p *Params) { p.Organization = strings.Repeat("o", 64) }, "organization"},
		"time zone with tab":      {func(p *Params) { p.TimeZone = "U\tTC" }, "time zone"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := good("2022")
			c.change(&p)
			out, err := Render(p)
			if err == nil {
				t.Fatalf("rendered %d bytes", len(out))
			}
			ps := fault.All(err)
			if len(ps) != 1 || ps[0].Field == "" || ps[0].Fix == "" || ps[0].Class != fault.Usage {
				t.Fatalf("got %#v", ps)
			}
			if ps[0].Field != c.field {
				t.Errorf("field %q, want %q", ps[0].Field, c.field)
			}
		})
	}
}

func TestRenderReportsAllAndNoSecret(t *testing.T) {
	p := good("2022")
	p.Account, p.Password, p.ComputerName = "a/b", "hunter2\x01", "!"
	p.ProductKey = "SECRET-KEY"
	_, err := Render(p)
	if n := len(fault.All(err)); n != 4 {
		t.Errorf("%d problems, want 4: %v", n, err)
	}
	for _, secret := range []string{"hunter2", "SECRET-KEY"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q: %v", secret, err)
		}
	}
}

func TestEvaluationHasNoKeyElement(t *testing.T) {
	out, err := Render(good("2025"))
	if err != nil {
		t.Fatal(err)
	}
	// MetaData has a Key of its own, so only ProductKey's part is looked at.
	_, rest, ok := strings.Cut(string(out), "<ProductKey>")
	part, _, _ := strings.Cut(rest, "</ProductKey>")
	if !ok || strings.Contains(part, "<Key") {
		t.Errorf("ProductKey: %q", part)
	}
}

func TestEnableWinRMFits(t *testing.T) {
	if len(EnableWinRM) > maxCommandLine {
		t.Errorf("%d characters, Windows takes %d", len(EnableWinRM), maxCommandLine)
	}
}

func TestDigest(t *testing.T) {
	seen := map[string]string{}
	for _, r := range Releases() {
		d, err := Digest(r)
		if err != nil || len(d) != 64 {
			t.Fatalf("Digest(%q) = %q, %v", r, d, err)
		}
		if other := seen[d]; other != "" {
			t.Errorf("%s and %s have the same digest", r, other)
		}
		seen[d] = r
	}
	if _, err := Digest("2016"); fault.ClassOf(err) != fault.Usage {
		t.Errorf("Digest of an unknown release: %v", err)
	}
}
