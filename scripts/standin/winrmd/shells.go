package winrmd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// shell is one remote shell and its commands.
type shell struct {
	user string

	mu       sync.Mutex
	used     time.Time
	commands map[string]*command
}

func (sh *shell) command(id string) (*command, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.used = time.Now()
	if c, ok := sh.commands[id]; ok {
		return c, nil
	}
	return nil, faultNoCommand()
}

// close terminates all commands.
func (sh *shell) close() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for id, c := range sh.commands {
		c.terminate()
		delete(sh.commands, id)
	}
}

// idleSince says whether the shell was neither used nor at work since t.
func (sh *shell) idleSince(t time.Time) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, c := range sh.commands {
		if !c.ended() {
			return false
		}
	}
	return sh.used.Before(t)
}

// answer carries out one request and returns the HTTP status and the envelope.
func (s *Server) answer(ctx context.Context, user string, request []byte) (int, []byte) {
	e, err := parseEnvelope(request)
	if err != nil {
		e, err = new(envelope), faultInvalid(err.Error())
		return s.fault(e, err)
	}
	if e.Body.Identify != nil {
		return http.StatusOK, answerEnvelope("", e.Header.MessageID, `<wsmid:IdentifyResponse xmlns:wsmid="`+nsIdentity+
			`"><wsmid:ProtocolVersion>`+nsWsman+`</wsmid:ProtocolVersion><wsmid:ProductVendor>Microsoft Corporation</wsmid:ProductVendor>`+
			`<wsmid:ProductVersion>OS: 0.0.0 SP: 0.0 Stack: 3.0</wsmid:ProductVersion></wsmid:IdentifyResponse>`)
	}
	type operation struct {
		response string
		run      func(context.Context, string, *envelope) (string, error)
	}
	operations := map[string]operation{
		nsTransfer + "/Create": {nsTransfer + "/CreateResponse", s.create},
		nsTransfer + "/Delete": {nsTransfer + "/DeleteResponse", s.remove},
		nsShell + "/Command":   {nsShell + "/CommandResponse", s.execute},
		nsShell + "/Send":      {nsShell + "/SendResponse", s.send},
		nsShell + "/Receive":   {nsShell + "/ReceiveResponse", s.receive},
		nsShell + "/Signal":    {nsShell + "/SignalResponse", s.signal},
	}
	action := strings.TrimSpace(e.Header.Action)
	op, ok := operations[action]
	if !ok || strings.TrimSpace(e.Header.ResourceURI) != shellURI {
		return s.fault(e, faultAction(action))
	}
	body, err := op.run(ctx, user, e)
	if err != nil {
		return s.fault(e, err)
	}
	return http.StatusOK, answerEnvelope(op.response, e.Header.MessageID, body)
}

func (s *Server) fault(e *envelope, err error) (int, []byte) {
	f := new(fault)
	if !errors.As(err, &f) {
		f = faultInvalid(err.Error())
	}
	return f.status, answerEnvelope(actionFault, e.Header.MessageID, f.body(s.computerName()))
}

func (s *Server) create(_ context.Context, user string, _ *envelope) (string, error) {
	limit, idle := s.MaxShells, s.IdleTimeout
	if limit == 0 {
		limit = 30
	}
	if idle == 0 {
		idle = 2 * time.Hour
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := 0
	for id, sh := range s.shells {
		switch {
		case sh.idleSince(time.Now().Add(-idle)):
			sh.close()
			delete(s.shells, id)
		case sh.user == user:
			open++
		}
	}
	if open >= limit {
		return "", faultShells(limit)
	}
	if s.shells == nil {
		s.shells = make(map[string]*shell)
	}
	id := newID()
	s.shells[id] = &shell{user: user, used: time.Now(), commands: make(map[string]*command)}
	return `<x:ResourceCreated><a:Address>http://localhost/wsman</a:Address><a:ReferenceParameters><w:ResourceURI>` + shellURI +
		`</w:ResourceURI><w:SelectorSet><w:Selector Name="ShellId">` + id + `</w:Selector></w:SelectorSet></a:ReferenceParameters></x:ResourceCreated>` +
		`<rsp:Shell><rsp:ShellId>` + id + `</rsp:ShellId><rsp:ResourceUri>` + shellURI + `</rsp:ResourceUri><rsp:Owner>` + escape(user) +
		`</rsp:Owner><rsp:InputStreams>stdin</rsp:InputStreams><rsp:OutputStreams>stdout stderr</rsp:OutputStreams></rsp:Shell>`, nil
}

// find returns the shell that a request is about; shells are their owner's alone.
func (s *Server) find(user string, e *envelope) (*shell, error) {
	id := e.selector("ShellId")
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh, ok := s.shells[id]; ok && sh.user == user {
		return sh, nil
	}
	return nil, faultNoShell(id)
}

func (s *Server) remove(_ context.Context, user string, e *envelope) (string, error) {
	sh, err := s.find(user, e)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	delete(s.shells, e.selector("ShellId"))
	s.mu.Unlock()
	sh.close()
	return "", nil
}

func (s *Server) closeShells() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sh := range s.shells {
		sh.close()
		delete(s.shells, id)
	}
}

func (s *Server) execute(ctx context.Context, user string, e *envelope) (string, error) {
	sh, err := s.find(user, e)
	if err != nil {
		return "", err
	}
	if e.Body.CommandLine == nil {
		return "", faultInvalid("the request has no CommandLine")
	}
	line := strings.Join(append([]string{e.Body.CommandLine.Command}, e.Body.CommandLine.Arguments...), " ")
	id := newID()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.used = time.Now()
	// The command outlives the request that starts it.
	sh.commands[id] = startCommand(context.WithoutCancel(ctx), s.Shell, user, line)
	return `<rsp:CommandResponse><rsp:CommandId>` + id + `</rsp:CommandId></rsp:CommandResponse>`, nil
}

func (s *Server) send(ctx context.Context, user string, e *envelope) (string, error) {
	sh, err := s.find(user, e)
	if err != nil {
		return "", err
	}
	if e.Body.Send == nil {
		return "", faultInvalid("the request has no Send")
	}
	for _, stream := range e.Body.Send.Streams {
		c, err := sh.command(stream.CommandID)
		if err != nil {
			return "", err
		}
		data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(stream.Data))
		if err != nil || stream.Name != "stdin" {
			return "", faultInvalid("the stream is not base64, or not stdin")
		}
		if !c.feed(ctx, data, stream.End == "true", e.timeout()) {
			return "", faultTimeout()
		}
	}
	return `<rsp:SendResponse/>`, nil
}

func (s *Server) receive(ctx context.Context, user string, e *envelope) (string, error) {
	sh, err := s.find(user, e)
	if err != nil {
		return "", err
	}
	if e.Body.Receive == nil {
		return "", faultInvalid("the request has no Receive")
	}
	id := e.Body.Receive.DesiredStream.CommandID
	c, err := sh.command(id)
	if err != nil {
		return "", err
	}
	limit := 64 << 10
	if size := e.Header.MaxEnvelopeSize; size > 0 {
		limit = max(512, min(limit, (size-2000)*3/4))
	}
	out, done, exit, ok := c.fetch(ctx, limit, e.timeout())
	if !ok {
		return "", faultTimeout()
	}
	var b strings.Builder
	b.WriteString(`<rsp:ReceiveResponse>`)
	for i, name := range []string{"stdout", "stderr"} {
		if len(out[i]) > 0 {
			fmt.Fprintf(&b, `<rsp:Stream Name="%s" CommandId="%s">%s</rsp:Stream>`, name, id, base64.StdEncoding.EncodeToString(out[i]))
		}
		if done {
			fmt.Fprintf(&b, `<rsp:Stream Name="%s" CommandId="%s" End="true"></rsp:Stream>`, name, id)
		}
	}
	if done {
		b.WriteString(`<rsp:CommandState CommandId="` + id + `" State="` + nsShell + `/CommandState/Done"><rsp:ExitCode>` +
			strconv.Itoa(exit) + `</rsp:ExitCode></rsp:CommandState>`)
	} else {
		b.WriteString(`<rsp:CommandState CommandId="` + id + `" State="` + nsShell + `/CommandState/Running"/>`)
	}
	b.WriteString(`</rsp:ReceiveResponse>`)
	return b.String(), nil
}

// signal ends a command. Windows knows terminate, ctrl_c and ctrl_break; after
// the first the command is gone, after the others its output can be fetched.
func (s *Server) signal(_ context.Context, user string, e *envelope) (string, error) {
	sh, err := s.find(user, e)
	if err != nil {
		return "", err
	}
	if e.Body.Signal == nil {
		return "", faultInvalid("the request has no Signal")
	}
	id := e.Body.Signal.CommandID
	c, err := sh.command(id)
	if err != nil {
		return "", err
	}
	switch code := strings.TrimSpace(e.Body.Signal.Code); code {
	case nsShell + "/signal/terminate":
		c.terminate()
		sh.mu.Lock()
		delete(sh.commands, id)
		sh.mu.Unlock()
	case nsShell + "/signal/ctrl_c", nsShell + "/signal/ctrl_break":
		c.cancel()
	default:
		return "", faultInvalid("unknown signal " + code)
	}
	return `<rsp:SignalResponse/>`, nil
}
