package winrmd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/masterzen/winrm"
	"github.com/masterzen/winrm/soap"

	"github.com/wbox-dev/wbox/scripts/standin/winrmd"
)

// shellFunc makes a Shell of a function.
type shellFunc func(ctx context.Context, line string, in io.Reader, out, errs io.Writer) int

func (f shellFunc) Run(ctx context.Context, _, line string, in io.Reader, out, errs io.Writer) int {
	return f(ctx, line, in, out, errs)
}

// play is a shell with a few commands.
func play(ctx context.Context, line string, in io.Reader, out, errs io.Writer) int {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "echo":
		fmt.Fprintln(out, rest)
	case "warn":
		fmt.Fprintln(errs, rest)
		return 3
	case "cat":
		_, _ = io.Copy(out, in)
	case "flood":
		_, _ = out.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
	case "hang":
		<-ctx.Done()
		return 1
	case "slow":
		select {
		case <-ctx.Done():
		case <-time.After(1500 * time.Millisecond):
		}
		fmt.Fprintln(out, "late")
	}
	return 0
}

func accounts(user string) (string, bool) { return "s3cret-Pässword", user == "Administrator" }

func yes() bool { return true }

// listen serves s on loopback until the test ends.
func listen(t *testing.T, s *winrmd.Server, config *tls.Config) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().(*net.TCPAddr)
}

// testTLS borrows httptest's certificate.
func testTLS(t *testing.T) *tls.Config {
	t.Helper()
	ts := httptest.NewTLSServer(http.NotFoundHandler())
	defer ts.Close()
	return &tls.Config{Certificates: ts.TLS.Certificates, MinVersion: tls.VersionTLS12}
}

func client(t *testing.T, addr *net.TCPAddr, https bool, password string, decorate func() winrm.Transporter) *winrm.Client {
	t.Helper()
	params := winrm.NewParameters("PT1S", "en-US", 153600)
	params.TransportDecorator = decorate
	endpoint := winrm.NewEndpoint("127.0.0.1", addr.Port, https, true, nil, nil, nil, 10*time.Second)
	c, err := winrm.NewClientWithParameters(endpoint, "Administrator", password, params)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sealed() winrm.Transporter {
	e, err := winrm.NewEncryption("ntlm")
	if err != nil {
		panic(err) // the name is right
	}
	return e
}

// TestForeignClient drives the server with the library's own transports, which
// share no code with it.
func TestForeignClient(t *testing.T) {
	password, _ := accounts("")
	ways := []struct {
		name     string
		server   winrmd.Server
		https    bool
		decorate func() winrm.Transporter
	}{
		{"basic over HTTPS", winrmd.Server{Basic: yes}, true, nil},
		{"basic over HTTP", winrmd.Server{Basic: yes, AllowUnencrypted: yes}, false, nil},
		{"NTLM over HTTP, unsealed", winrmd.Server{AllowUnencrypted: yes}, false, func() winrm.Transporter { return &winrm.ClientNTLM{} }},
		{"NTLM over HTTP, sealed", winrmd.Server{}, false, sealed},
	}
	commands := []struct {
		line, stdin, stdout, stderr string
		exit                        int
	}{
		{"echo grüße & <tags>", "", "grüße & <tags>\n", "", 0},
		{"warn careful", "", "", "careful\n", 3},
		{"cat", strings.Repeat("line\r\n", 50000), strings.Repeat("line\r\n", 50000), "", 0},
		{"flood", "", strings.Repeat("0123456789abcdef", 1<<16), "", 0},
		{"slow", "", "late\n", "", 0}, // longer than the operation timeout
	}
	for i := range ways {
		way := &ways[i]
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			way.server.Shell, way.server.Accounts = shellFunc(play), accounts
			var config *tls.Config
			if way.https {
				config = testTLS(t)
			}
			addr := listen(t, &way.server, config)
			for _, c := range commands {
				if c.stdin != "" && way.name == "NTLM over HTTP, sealed" {
					continue // the library's sealing transport can't post from two goroutines
				}
				var stdout, stderr bytes.Buffer
				var stdin io.Reader
				if c.stdin != "" {
					stdin = strings.NewReader(c.stdin)
				}
				exit, err := client(t, addr, way.https, password, way.decorate).
					RunWithContextWithInput(t.Context(), c.line, &stdout, &stderr, stdin)
				if err != nil || exit != c.exit || stdout.String() != c.stdout || stderr.String() != c.stderr {
					t.Errorf("%s: exit %d, %v, stdout %.60q (%d bytes), stderr %.60q", c.line, exit, err, stdout.String(), stdout.Len(), stderr.String())
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	password, _ := accounts("")
	ways := []struct {
		name     string
		server   *winrmd.Server
		password string
		decorate func() winrm.Transporter
	}{
		{"Basic is off", &winrmd.Server{AllowUnencrypted: yes}, password, nil},
		{"Basic in clear is off", &winrmd.Server{Basic: yes}, password, nil},
		{"wrong password, Basic", &winrmd.Server{Basic: yes, AllowUnencrypted: yes}, "wrong", nil},
		{"wrong password, NTLM", &winrmd.Server{AllowUnencrypted: yes}, "wrong", func() winrm.Transporter { return &winrm.ClientNTLM{} }},
		{"unsealed NTLM is off", &winrmd.Server{}, password, func() winrm.Transporter { return &winrm.ClientNTLM{} }},
		{"wrong password, sealed NTLM", &winrmd.Server{}, "wrong", sealed},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			ran := false
			way.server.Shell = shellFunc(func(context.Context, string, io.Reader, io.Writer, io.Writer) int { ran = true; return 0 })
			way.server.Accounts = accounts
			addr := listen(t, way.server, nil)
			_, err := client(t, addr, false, way.password, way.decorate).CreateShell()
			if err == nil || ran {
				t.Errorf("a shell was opened (error %v, ran %v)", err, ran)
			}
		})
	}
}

// checkFault looks for a fault's number in what the library keeps of it.
func checkFault(t *testing.T, err error, number string) {
	t.Helper()
	var e *winrm.ExecuteCommandError
	if !errors.As(err, &e) || !strings.Contains(e.Body, `Code="`+number+`"`) {
		t.Errorf("error %v, want fault %s", err, number)
	}
}

func TestFaults(t *testing.T) {
	s := &winrmd.Server{Shell: shellFunc(play), Accounts: accounts, Basic: yes, AllowUnencrypted: yes, MaxShells: 2}
	addr := listen(t, s, nil)
	password, _ := accounts("")
	c := client(t, addr, false, password, nil)

	t.Run("unknown shell", func(t *testing.T) {
		_, err := c.NewShell("NO-SUCH").ExecuteWithContext(t.Context(), "echo x")
		checkFault(t, err, "2150858843")
	})
	t.Run("shell limit", func(t *testing.T) {
		for range 2 {
			sh, err := c.CreateShell()
			if err != nil {
				t.Fatal(err)
			}
			defer sh.Close()
		}
		_, err := c.CreateShell()
		checkFault(t, err, "2150859173")
	})
	t.Run("not XML, not found, not POST", func(t *testing.T) {
		for _, q := range []struct {
			method, path, body string
			status             int
		}{
			{"POST", "/wsman", "<<<", 500},
			{"POST", "/other", "", 404},
			{"GET", "/wsman", "", 405},
			{"POST", "/wsman", "<Envelope><Body><Identify/></Body></Envelope>", 200},
		} {
			req, _ := http.NewRequestWithContext(t.Context(), q.method, "http://"+addr.String()+q.path, strings.NewReader(q.body))
			req.SetBasicAuth("Administrator", password)
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != q.status {
				t.Errorf("%s %s: status %d, want %d", q.method, q.path, resp.StatusCode, q.status)
			}
		}
	})
}

// post sends one message by itself: the library's commands go on polling in the
// background, and panic when the server is gone.
func post(t *testing.T, url string, message *soap.SoapMessage) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message.String()))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := accounts("")
	req.SetBasicAuth("Administrator", password)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestEndCancelsCommands: a guest that reboots takes its commands with it.
func TestEndCancelsCommands(t *testing.T) {
	ended := make(chan struct{})
	s := &winrmd.Server{Accounts: accounts, Basic: yes, AllowUnencrypted: yes,
		Shell: shellFunc(func(ctx context.Context, _ string, in io.Reader, _, _ io.Writer) int {
			_, _ = io.Copy(io.Discard, in) // stdin ends with ctx too
			close(ended)
			return 0
		})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, nil) }()
	url := "http://" + l.Addr().String() + "/wsman"
	id, err := winrm.ParseOpenShellResponse(post(t, url, winrm.NewOpenShellRequest(url, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := winrm.ParseExecuteCommandResponse(post(t, url, winrm.NewExecuteCommandRequest(url, id, "wait", nil, nil))); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the command went on after the server's end")
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
