package winrmd

import (
	"bytes"
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Namespaces and actions, from MS-WSMV and DSP0226.
const (
	nsSoap     = "http://www.w3.org/2003/05/soap-envelope"
	nsAddress  = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
	nsTransfer = "http://schemas.xmlsoap.org/ws/2004/09/transfer"
	nsWsman    = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
	nsShell    = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell"
	nsFault    = "http://schemas.microsoft.com/wbem/wsman/1/wsmanfault"
	nsIdentity = "http://schemas.dmtf.org/wbem/wsman/identity/1/wsmanidentity.xsd"

	actionFault = "http://schemas.dmtf.org/wbem/wsman/1/wsman/fault"
	shellURI    = nsShell + "/cmd"
)

// envelope is a request, as far as this server reads it.
type envelope struct {
	Header struct {
		Action           string
		MessageID        string
		ResourceURI      string
		MaxEnvelopeSize  int
		OperationTimeout string
		Selectors        []named `xml:"SelectorSet>Selector"`
		Options          []named `xml:"OptionSet>Option"`
	}
	Body struct {
		Identify    *struct{}
		CommandLine *struct {
			Command   string
			Arguments []string
		}
		Receive *struct {
			DesiredStream struct {
				CommandID string `xml:"CommandId,attr"`
			}
		}
		Send *struct {
			Streams []struct {
				Name      string `xml:"Name,attr"`
				CommandID string `xml:"CommandId,attr"`
				End       string `xml:"End,attr"`
				Data      string `xml:",chardata"`
			} `xml:"Stream"`
		}
		Signal *struct {
			CommandID string `xml:"CommandId,attr"`
			Code      string
		}
	}
}

type named struct {
	Name  string `xml:"Name,attr"`
	Value string `xml:",chardata"`
}

func (e *envelope) selector(name string) string {
	for _, s := range e.Header.Selectors {
		if s.Name == name {
			return strings.TrimSpace(s.Value)
		}
	}
	return ""
}

// parseEnvelope reads a request.
func parseEnvelope(data []byte) (*envelope, error) {
	e := new(envelope)
	if err := xml.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return e, nil
}

// timeout returns how long the client wants an operation to block, within
// (0, 60 s], Windows' MaxTimeoutms; 60 s where it does not say.
func (e *envelope) timeout() time.Duration {
	d, ok := parseDuration(e.Header.OperationTimeout)
	if !ok || d <= 0 || d > time.Minute {
		return time.Minute
	}
	return d
}

// parseDuration reads the time part of an xs:duration, such as PT20S or PT1M0.5S.
func parseDuration(s string) (time.Duration, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "PT")
	if !ok || rest == "" {
		return 0, false
	}
	d, err := time.ParseDuration(strings.ToLower(rest))
	return d, err == nil && d >= 0
}

// fault is a WSMan fault.
type fault struct {
	status  int
	code    string // s:Sender or s:Receiver
	subcode string
	number  uint32 // the code of wsmerror.h or winerror.h
	reason  string
}

func (f *fault) Error() string { return f.reason }

// The faults, with the numbers of wsmerror.h.
func faultTimeout() *fault {
	return &fault{http.StatusInternalServerError, "s:Receiver", "w:TimedOut", 2150858793,
		"The WS-Management service cannot complete the operation within the time specified in OperationTimeout."}
}

func faultNoShell(id string) *fault {
	return &fault{http.StatusInternalServerError, "s:Sender", "w:InvalidSelectors", 2150858843,
		"The request for the Windows Remote Shell with ShellId " + id + " failed because the shell was not found on the server."}
}

func faultNoCommand() *fault {
	return &fault{http.StatusInternalServerError, "s:Sender", "w:InvalidSelectors", 2150858752,
		"The WS-Management service cannot process the request. The service cannot find the resource identified by the resource URI and selectors."}
}

func faultShells(limit int) *fault {
	return &fault{http.StatusInternalServerError, "s:Receiver", "w:QuotaLimit", 2150859173,
		fmt.Sprintf("The WS-Management service cannot process the request. This user is allowed a maximum number of %d concurrent shells, which has been exceeded.", limit)}
}

func faultAction(action string) *fault {
	return &fault{http.StatusInternalServerError, "s:Sender", "a:ActionNotSupported", 2150858753,
		"The action is not supported by the service: " + action}
}

func faultInvalid(reason string) *fault {
	return &fault{http.StatusInternalServerError, "s:Sender", "w:SchemaValidationError", 2150858817, reason}
}

// answer writes an envelope around body, which is XML.
func answerEnvelope(action, relatesTo, body string) []byte {
	var b bytes.Buffer
	b.Grow(len(body) + 900)
	b.WriteString(`<s:Envelope xml:lang="en-US" xmlns:s="` + nsSoap + `" xmlns:a="` + nsAddress + `" xmlns:x="` + nsTransfer +
		`" xmlns:w="` + nsWsman + `" xmlns:rsp="` + nsShell + `"><s:Header><a:Action>` + action +
		`</a:Action><a:MessageID>uuid:` + newID() + `</a:MessageID>` +
		`<a:To>http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous</a:To><a:RelatesTo>` + escape(relatesTo) +
		`</a:RelatesTo></s:Header><s:Body>`)
	b.WriteString(body)
	b.WriteString(`</s:Body></s:Envelope>`)
	return b.Bytes()
}

func (f *fault) body(machine string) string {
	reason := escape(f.reason)
	return `<s:Fault><s:Code><s:Value>` + f.code + `</s:Value><s:Subcode><s:Value>` + f.subcode +
		`</s:Value></s:Subcode></s:Code><s:Reason><s:Text xml:lang="en-US">` + reason +
		`</s:Text></s:Reason><s:Detail><f:WSManFault xmlns:f="` + nsFault + `" Code="` + strconv.FormatUint(uint64(f.number), 10) +
		`" Machine="` + escape(machine) + `"><f:Message>` + reason + `</f:Message></f:WSManFault></s:Detail></s:Fault>`
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// newID returns a random UUID in upper case, as Windows writes them.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}
