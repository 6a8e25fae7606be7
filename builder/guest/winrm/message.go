package winrm

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"time"

	masterzen "github.com/masterzen/winrm"
	"github.com/masterzen/winrm/soap"
)

// envelopeSize is how large the guest's answers may be, in bytes.
const envelopeSize = 153600

// messages builds requests. Texts are escaped here: the library puts contents
// into the XML as they are.
type messages struct {
	url    string
	params *masterzen.Parameters
}

func newMessages(cfg Config) messages {
	scheme := "http"
	if cfg.TLS {
		scheme = "https"
	}
	return messages{
		url:    scheme + "://" + cfg.Addr.String() + "/wsman",
		params: masterzen.NewParameters(duration(cfg.OperationTimeout), "en-US", envelopeSize),
	}
}

// duration writes d as an xs:duration.
func duration(d time.Duration) string {
	return "PT" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer does not fail
	return b.String()
}

func (m messages) create() []byte {
	return []byte(masterzen.NewOpenShellRequest(m.url, m.params).String())
}

func (m messages) remove(shell string) []byte {
	return []byte(masterzen.NewDeleteShellRequest(m.url, escape(shell), m.params).String())
}

func (m messages) receive(shell, command string) []byte {
	return []byte(masterzen.NewGetOutputRequest(m.url, escape(shell), escape(command), "stdout stderr", m.params).String())
}

func (m messages) send(shell, command string, data []byte, end bool) []byte {
	return []byte(masterzen.NewSendInputRequest(m.url, escape(shell), escape(command), data, end, m.params).String())
}

func (m messages) terminate(shell, command string) []byte {
	return []byte(masterzen.NewSignalRequest(m.url, escape(shell), escape(command), m.params).String())
}

// command differs from the library's in one option: where input comes, the
// standard input is a pipe and not a console, which would translate line ends.
func (m messages) command(shell, line string, input bool) []byte {
	console := "TRUE"
	if input {
		console = "FALSE"
	}
	message := soap.NewMessage()
	message.Header().
		To(m.url).
		ReplyTo("http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous").
		MaxEnvelopeSize(m.params.EnvelopeSize).
		Id(fmt.Sprintf("uuid:%s", newUUID())).
		Locale(m.params.Locale).
		Timeout(m.params.Timeout).
		Action(nsShell + "/Command").
		ResourceURI(nsShell + "/cmd").
		ShellId(escape(shell)).
		AddOption(soap.NewHeaderOption("WINRS_CONSOLEMODE_STDIN", console)).
		AddOption(soap.NewHeaderOption("WINRS_SKIP_CMD_SHELL", "FALSE")).
		Build()
	body := message.CreateBodyElement("CommandLine", soap.DOM_NS_WIN_SHELL)
	message.CreateElement(body, "Command", soap.DOM_NS_WIN_SHELL).SetContent(escape(line))
	return []byte(message.String())
}
