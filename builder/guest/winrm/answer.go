package winrm

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Actions and faults of MS-WSMV and wsmerror.h.
const (
	nsShell = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell"

	actionCreated  = "http://schemas.xmlsoap.org/ws/2004/09/transfer/CreateResponse"
	actionStarted  = nsShell + "/CommandResponse"
	actionReceived = nsShell + "/ReceiveResponse"
	actionSent     = nsShell + "/SendResponse"

	faultTimeout = 2150858793 // nothing to say within the operation timeout
	accessDenied = 5
)

// Fault is the guest's refusal of a request.
type Fault struct {
	Number  uint32 // of wsmerror.h or winerror.h; 0 where there is none
	Subcode string // such as "w:TimedOut"
	Reason  string // for people, in the guest's language
}

func (f *Fault) Error() string {
	return fmt.Sprintf("WSMan fault %d (%s): %s", f.Number, f.Subcode, f.Reason)
}

// Timeout says that the guest had nothing to answer in time and is to be asked again.
func (f *Fault) Timeout() bool {
	return f.Number == faultTimeout || strings.HasSuffix(f.Subcode, ":TimedOut")
}

// denied says that the account may not do what was asked.
func (f *Fault) denied() bool {
	return f.Number == accessDenied || strings.HasSuffix(f.Subcode, ":AccessDenied")
}

// envelope is an answer, as far as it is read here.
type envelope struct {
	XMLName xml.Name `xml:"http://www.w3.org/2003/05/soap-envelope Envelope"`
	Header  struct {
		Action string
	}
	Body struct {
		Shell *struct {
			ShellID string `xml:"ShellId"`
		}
		Created *struct {
			Selectors []struct {
				Name  string `xml:"Name,attr"`
				Value string `xml:",chardata"`
			} `xml:"ReferenceParameters>SelectorSet>Selector"`
		} `xml:"ResourceCreated"`
		CommandResponse *struct {
			CommandID string `xml:"CommandId"`
		}
		ReceiveResponse *struct {
			Streams []struct {
				Name string `xml:"Name,attr"`
				Data string `xml:",chardata"`
			} `xml:"Stream"`
			CommandState *struct {
				State    string `xml:"State,attr"`
				ExitCode *string
			}
		}
		Fault *struct {
			Subcode string `xml:"Code>Subcode>Value"`
			Reason  string `xml:"Reason>Text"`
			Detail  struct {
				WSManFault *struct {
					Code string `xml:"Code,attr"`
				}
			}
		}
	}
}

func parse(answer []byte) (*envelope, error) {
	e := new(envelope)
	if err := xml.NewDecoder(bytes.NewReader(answer)).Decode(e); err != nil {
		return nil, fmt.Errorf("reading the guest's answer: %w", err)
	}
	return e, nil
}

// expect checks an answer of which only the action matters.
func expect(answer []byte, action string) error {
	e, err := parse(answer)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(e.Header.Action); got != action {
		return fmt.Errorf("the guest answered with the action %.100q instead of %q", got, action)
	}
	return nil
}

// parseFault returns the fault in an answer, nil where it holds none.
func parseFault(answer []byte) *Fault {
	e, err := parse(answer)
	if err != nil || e.Body.Fault == nil {
		return nil
	}
	f := &Fault{Subcode: strings.TrimSpace(e.Body.Fault.Subcode), Reason: strings.TrimSpace(e.Body.Fault.Reason)}
	if d := e.Body.Fault.Detail.WSManFault; d != nil {
		n, _ := strconv.ParseUint(strings.TrimSpace(d.Code), 10, 32)
		f.Number = uint32(n)
	}
	return f
}

// parseID returns the id of the shell or command that an answer tells of.
func parseID(answer []byte, action, name string) (string, error) {
	if err := expect(answer, action); err != nil {
		return "", err
	}
	e, err := parse(answer)
	if err != nil {
		return "", err
	}
	id := ""
	switch {
	case name == "CommandId" && e.Body.CommandResponse != nil:
		id = e.Body.CommandResponse.CommandID
	case name == "ShellId" && e.Body.Shell != nil && e.Body.Shell.ShellID != "":
		id = e.Body.Shell.ShellID
	case name == "ShellId" && e.Body.Created != nil: // Windows before 2012 names it here only
		for _, s := range e.Body.Created.Selectors {
			if s.Name == name {
				id = s.Value
			}
		}
	}
	if id = strings.TrimSpace(id); id == "" {
		return "", fmt.Errorf("the guest's answer has no %s", name)
	}
	return id, nil
}

// received is what one answer to Receive holds.
type received struct {
	stdout, stderr []byte
	done           bool
	exit           int // with done only
}

// parseReceive reads output. An end without a readable exit code is an error:
// it must never pass for 0.
func parseReceive(answer []byte) (received, error) {
	var r received
	e, err := parse(answer)
	if err != nil {
		return r, err
	}
	body := e.Body.ReceiveResponse
	if strings.TrimSpace(e.Header.Action) != actionReceived || body == nil {
		return r, fmt.Errorf("the guest answered with the action %.100q instead of output", e.Header.Action)
	}
	for _, s := range body.Streams {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s.Data), ""))
		if err != nil {
			return r, fmt.Errorf("decoding the command's output: %w", err)
		}
		switch s.Name {
		case "stdout":
			r.stdout = append(r.stdout, data...)
		case "stderr":
			r.stderr = append(r.stderr, data...)
		}
	}
	if body.CommandState == nil || !strings.HasSuffix(body.CommandState.State, "/CommandState/Done") {
		return r, nil
	}
	if body.CommandState.ExitCode == nil {
		return r, errors.New("the command ended without an exit code")
	}
	n, err := strconv.ParseInt(strings.TrimSpace(*body.CommandState.ExitCode), 10, 64)
	if err != nil || n < math.MinInt32 || n > math.MaxUint32 {
		return r, fmt.Errorf("the exit code %.20q is none", *body.CommandState.ExitCode)
	}
	// Exit codes have 32 bits; codes such as 0xC000013A are told with and without sign.
	r.done, r.exit = true, int(int32(n)) //nolint:gosec // the wrap is meant
	return r, nil
}

// newUUID returns a random message id.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // does not fail
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
