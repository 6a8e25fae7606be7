package winrm

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

const open = `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header><Action>` + actionReceived + `</Action></s:Header><s:Body>`

func receiveAnswer(inner string) string {
	return open + `<ReceiveResponse>` + inner + `</ReceiveResponse></s:Body></s:Envelope>`
}

func stateDone(code string) string {
	return `<CommandState State="` + nsShell + `/CommandState/Done">` + code + `</CommandState>`
}

func TestParseReceive(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	for name, c := range map[string]struct {
		answer string
		want   received
		bad    bool
	}{
		"running":             {receiveAnswer(`<CommandState State="` + nsShell + `/CommandState/Running"/>`), received{}, false},
		"output":              {receiveAnswer(`<Stream Name="stdout">` + b64([]byte("a")) + `</Stream><Stream Name="stderr">` + b64([]byte("b")) + `</Stream><Stream Name="stdout">` + b64([]byte("c")) + `</Stream>`), received{stdout: []byte("ac"), stderr: []byte("b")}, false},
		"done":                {receiveAnswer(stateDone(`<ExitCode>3010</ExitCode>`)), received{done: true, exit: 3010}, false},
		"done, NTSTATUS":      {receiveAnswer(stateDone(`<ExitCode>3221225786</ExitCode>`)), received{done: true, exit: -1073741510}, false},
		"done without a code": {receiveAnswer(stateDone(``)), received{}, true},
		"empty code":          {receiveAnswer(stateDone(`<ExitCode/>`)), received{}, true},
		"code is no number":   {receiveAnswer(stateDone(`<ExitCode>ok</ExitCode>`)), received{}, true},
		"code is too large":   {receiveAnswer(stateDone(`<ExitCode>99999999999</ExitCode>`)), received{}, true},
		"not base64":          {receiveAnswer(`<Stream Name="stdout">%%%</Stream>` + stateDone(`<ExitCode>0</ExitCode>`)), received{}, true},
		"cut off":             {receiveAnswer(stateDone(`<ExitCode>0</ExitCode>`))[:300], received{}, true},
		"another action":      {strings.Replace(receiveAnswer(stateDone(`<ExitCode>0</ExitCode>`)), "ReceiveResponse<", "SignalResponse<", 1), received{}, true},
		"empty":               {"", received{}, true},
	} {
		got, err := parseReceive([]byte(c.answer))
		if (err != nil) != c.bad {
			t.Errorf("%s: error %v, want one: %v", name, err, c.bad)
		}
		if err == nil && (got.done != c.want.done || got.exit != c.want.exit || string(got.stdout) != string(c.want.stdout) || string(got.stderr) != string(c.want.stderr)) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if err != nil && got.done {
			t.Errorf("%s: an error, and done all the same", name)
		}
	}
}

func FuzzParseReceive(f *testing.F) {
	f.Add([]byte(receiveAnswer(stateDone(`<ExitCode>0</ExitCode>`))))
	f.Add([]byte(receiveAnswer(`<Stream Name="stdout">aGk=</Stream>`)))
	f.Add([]byte(open + `<s:Fault><s:Code><s:Subcode><s:Value>w:TimedOut</s:Value></s:Subcode></s:Code></s:Fault></s:Body></s:Envelope>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseReceive(data)
		if err == nil && r.done && !strings.Contains(string(data), "ExitCode") {
			t.Error("an exit code was made up")
		}
		if fault := parseFault(data); fault != nil {
			_ = fault.Error()
		}
		_, _ = parseID(data, actionCreated, "ShellId")
	})
}

func TestMessagesEscape(t *testing.T) {
	m := newMessages(Config{OperationTimeout: 1500 * time.Millisecond})
	text := string(m.command("SHELL", `echo <&> ]]> "x"`, true))
	for _, want := range []string{"echo &lt;&amp;&gt; ]]&gt; &#34;x&#34;", "PT1.5S", `WINRS_CONSOLEMODE_STDIN">FALSE`} {
		if !strings.Contains(text, want) {
			t.Errorf("the message lacks %q: %s", want, text)
		}
	}
	if text := string(m.command("SHELL", "x", false)); !strings.Contains(text, `WINRS_CONSOLEMODE_STDIN">TRUE`) {
		t.Errorf("without input the console mode is off: %s", text)
	}
}
