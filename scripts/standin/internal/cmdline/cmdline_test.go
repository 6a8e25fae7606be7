package cmdline

import (
	"reflect"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	// The first five are the examples of Microsoft's reference.
	for line, want := range map[string][]string{
		`"abc" d e`:      {"abc", "d", "e"},
		`a\\b d"e f"g h`: {`a\\b`, "de fg", "h"},
		`a\\\"b c d`:     {`a\"b`, "c", "d"},
		`a\\\\"b c" d e`: {`a\\b c`, "d", "e"},
		`a"b"" c d`:      {`ab" c d`},
		`""`:             {""},
		`  `:             nil,
		`sc.exe create x binPath= "\"C:\k\a b.exe\" --x"`: {"sc.exe", "create", "x", "binPath=", `"C:\k\a b.exe" --x`},
	} {
		if got := Split(line); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(`shutdown -a 2>nul & shutdown /s /t 1 /f /c "a & b" && echo x^&y > NUL 2>&1`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Command{
		{Args: []string{"shutdown", "-a"}, Raw: "shutdown -a", Null: "2"},
		{After: "&", Args: []string{"shutdown", "/s", "/t", "1", "/f", "/c", "a & b"}, Raw: `shutdown /s /t 1 /f /c "a & b"`},
		{After: "&&", Args: []string{"echo", "x&y"}, Raw: "echo x&y", Null: "1", Merge: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"dir | more": "pipes", "dir > x.txt": "NUL", "sort < x": "input", "echo %PATH%": "variables", "a && ": "missing", "& a": "missing",
	} {
		if _, err := Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`powershell.exe -Command "a" > nul 2>&1 & exit 3`)
	f.Add(`a\\\"b "c^d`)
	f.Fuzz(func(t *testing.T, line string) {
		commands, err := Parse(line)
		if err != nil && commands != nil {
			t.Error("commands beside an error")
		}
		for _, c := range commands {
			if len(c.Args) == 0 {
				t.Errorf("an empty command in %q", line)
			}
		}
	})
}
