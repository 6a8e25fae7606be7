package answerfile

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
)

// texts decodes a document strictly and returns the character data of every
// element that has some, by its path without the passes and components.
func texts(t *testing.T, doc []byte) map[string][]string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(doc))
	found := map[string][]string{}
	var path []string
	var data strings.Builder
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, doc)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			path = append(path, tok.Name.Local)
			data.Reset()
		case xml.CharData:
			data.Write(tok)
		case xml.EndElement:
			if s := data.String(); strings.TrimSpace(s) != "" {
				key := strings.Join(path[min(3, len(path)-1):], "/")
				found[key] = append(found[key], s)
			}
			data.Reset()
			path = path[:len(path)-1]
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("2022", "wbox", "Not-A-Secret-0", "Windows Server 2022 SERVERSTANDARDCORE", "wbox", EnableWinRM)
	f.Add("2025", "o'brien", `<>&"'`, "]]>", "&amp;", `<!-- -->`)
	f.Add("2019", "söhne", "\u2028\ufffd😀", "{{ .Password }}", "<Key/>", "cmd.exe /c \"a & b\"")
	f.Add("2022", "a\x00", "b\r\n", "\ufffe", " ", "\xff")
	f.Fuzz(func(t *testing.T, release, account, password, image, organization, command string) {
		p := Params{Release: release, Account: account, Password: password, ImageName: image,
			Organization: organization, Commands: []string{command}}
		doc, err := Render(p)
		if err != nil {
			if len(fault.All(err)) == 0 || fault.ClassOf(err) != fault.Usage {
				t.Fatalf("not a problem: %v", err)
			}
			return
		}
		if organization == "" {
			organization = "wbox"
		}
		got := texts(t, doc)
		for path, want := range map[string]string{
			"UserAccounts/LocalAccounts/LocalAccount/Name":           account,
			"UserAccounts/LocalAccounts/LocalAccount/Password/Value": password,
			"UserAccounts/AdministratorPassword/Value":               password,
			"AutoLogon/Username":                                     account,
			"AutoLogon/Password/Value":                               password,
			"ImageInstall/OSImage/InstallFrom/MetaData/Value":        image,
			"UserData/Organization":                                  organization,
			"FirstLogonCommands/SynchronousCommand/CommandLine":      command,
			"ImageInstall/OSImage/InstallTo/PartitionID":             "4",
		} {
			if v := got[path]; len(v) != 1 || v[0] != want {
				t.Errorf("%s = %q, want %q", path, v, want)
			}
		}
		labels := got["DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Label"]
		if strings.Join(labels, ",") != "System,WBOX,Windows" {
			t.Errorf("labels %q", labels)
		}
	})
}
