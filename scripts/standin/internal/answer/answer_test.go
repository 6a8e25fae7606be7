package answer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// golden is the renderer's own golden file: what wbox writes must be what the
// stand-in reads.
func golden(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "builder", "answerfile", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestParseGolden(t *testing.T) {
	for _, name := range []string{"2019.xml", "2022.xml", "2025.xml", "all-values.xml"} {
		a, err := Parse([]byte(golden(t, name)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(a.Disks) != 1 || len(a.Disks[0].Create) != len(a.Disks[0].Modify) || a.Image.Name == "" || len(a.Accounts) != 1 || len(a.FirstLogon) == 0 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestParseValues(t *testing.T) {
	a, err := Parse([]byte(golden(t, "all-values.xml")))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Disks[0].Create[2]; got != (Partition{Order: 3, Type: "Primary", Size: 1024}) {
		t.Errorf("partition 3: %+v", got)
	}
	if got := a.Disks[0].Modify[3]; got != (Modify{Order: 4, PartitionID: 4, Format: "NTFS", Label: "Windows", Letter: "C"}) {
		t.Errorf("modification 4: %+v", got)
	}
	if a.Accounts[0].Name != "o'brien & söhne" || a.Accounts[0].Password.Value != `<p>&"q"'` || a.AutoLogon.User != a.Accounts[0].Name {
		t.Errorf("account: %+v, %+v", a.Accounts[0], a.AutoLogon)
	}
	if a.EnableLUA || a.ComputerName != "node-1" || a.TimeZone != "W. Europe Standard Time" || a.ProductKey == "" {
		t.Errorf("settings: %+v", a)
	}
	if want := `cmd.exe /c echo "<1>" & rem`; a.FirstLogon[0].Line != want {
		t.Errorf("first command: %q", a.FirstLogon[0].Line)
	}
}

func TestParseRefuses(t *testing.T) {
	base := golden(t, "2022.xml")
	for name, c := range map[string]struct{ old, new, path string }{
		"unknown pass":       {`pass="specialize"`, `pass="auditSystem"`, "auditSystem"},
		"unknown component":  {`"Microsoft-Windows-LUA-Settings"`, `"Microsoft-Windows-LUA"`, "offlineServicing/Microsoft-Windows-LUA"},
		"unknown element":    {"<TimeZone>UTC</TimeZone>", "<TimeZones>UTC</TimeZones>", "TimeZones"},
		"unknown attribute":  {"<OSImage>", `<OSImage lang="de">`, "ImageInstall/OSImage"},
		"architecture":       {`processorArchitecture="amd64"`, `processorArchitecture="x86"`, "windowsPE"},
		"foreign namespace":  {"<TimeZone>UTC</TimeZone>", `<TimeZone xmlns="urn:x">UTC</TimeZone>`, "TimeZone"},
		"no action":          {`<CreatePartition wcm:action="add">`, "<CreatePartition>", "CreatePartition"},
		"no licence":         {"<AcceptEula>true</AcceptEula>", "<AcceptEula>false</AcceptEula>", "AcceptEula"},
		"empty key":          {"<ProductKey>", "<ProductKey><Key></Key>", "ProductKey/Key"},
		"order":              {"<Order>3</Order>", "<Order>7</Order>", "Disk"},
		"size and extend":    {"<Size>16</Size>", "<Size>16</Size><Extend>true</Extend>", "CreatePartition"},
		"no image":           {"/IMAGE/NAME", "/IMAGE/TITLE", "MetaData/Key"},
		"letter":             {"<Letter>C</Letter>", "<Letter>1</Letter>", "ModifyPartition"},
		"no logon":           {"<Enabled>true</Enabled>", "<Enabled>false</Enabled>", "FirstLogonCommands"},
		"unknown account":    {"<Username>wbox</Username>", "<Username>nobody</Username>", "AutoLogon"},
		"truth value":        {"<EnableLUA>false</EnableLUA>", "<EnableLUA>no</EnableLUA>", "EnableLUA"},
		"text between":       {"<OSImage>", "<OSImage>text", "OSImage"},
		"cut off":            {"</unattend>", "", ""},
		"twice":              {"<TimeZone>UTC</TimeZone>", "<TimeZone>UTC</TimeZone><TimeZone>UTC</TimeZone>", "TimeZone"},
		"long computer name": {"<ComputerName>*</ComputerName>", "<ComputerName>a-name-of-16-char</ComputerName>", "specialize/Microsoft-Windows-Shell-Setup"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(base, c.old) {
				t.Fatalf("the golden file has no %q", c.old)
			}
			_, err := Parse([]byte(strings.Replace(base, c.old, c.new, 1)))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.path) {
				t.Errorf("%v does not name %s", err, c.path)
			}
		})
	}
}

func TestParseReportsAll(t *testing.T) {
	text := strings.Replace(golden(t, "2022.xml"), "<AcceptEula>true", "<AcceptEula>false", 1)
	text = strings.Replace(text, "<TimeZone>UTC</TimeZone>", "<Zone>UTC</Zone>", 1)
	_, err := Parse([]byte(text))
	var e *Error
	if !errors.As(err, &e) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two refusals, got %v", err)
	}
}

func TestEncodedPassword(t *testing.T) {
	var raw []byte
	for _, u := range utf16.Encode([]rune("Not-A-Secret-0" + "Password")) {
		raw = binary.LittleEndian.AppendUint16(raw, u)
	}
	text := golden(t, "2022.xml")
	at := strings.Index(text, "<LocalAccount ")
	text = text[:at] + strings.Replace(strings.Replace(text[at:], "Not-A-Secret-0", base64.StdEncoding.EncodeToString(raw), 1), "<PlainText>true", "<PlainText>false", 1)
	a, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Accounts[0].Password.Value; got != "Not-A-Secret-0" {
		t.Errorf("password %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"2022.xml", "all-values.xml"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "builder", "answerfile", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse(data)
		if (a == nil) == (err == nil) {
			t.Errorf("answer %v with error %v", a, err)
		}
	})
}
