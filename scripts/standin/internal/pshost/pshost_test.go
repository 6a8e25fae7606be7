package pshost

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// peer plays PowerShell.
type peer struct {
	t    *testing.T
	host *Host
	in   *bufio.Reader
	out  *io.PipeWriter
}

func newPeer(t *testing.T, call func(string, []string) Result) *peer {
	t.Helper()
	fromHost, toPeer := io.Pipe()
	fromPeer, toHost := io.Pipe()
	p := &peer{t: t, in: bufio.NewReader(fromHost), out: toHost}
	p.host = New(fromPeer, toPeer, call)
	t.Cleanup(func() { toHost.Close(); fromHost.Close() })
	return p
}

func (p *peer) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.out, line+"\n"); err != nil {
		p.t.Error(err)
	}
}

func (p *peer) hear() map[string]any {
	p.t.Helper()
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		p.t.Error(err)
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(line, &m); err != nil {
		p.t.Errorf("%s: %v", line, err)
	}
	return m
}

type ran struct {
	exit           int
	err            error
	stdout, stderr string
}

func (p *peer) run(ctx context.Context, r Request) <-chan ran {
	done := make(chan ran, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		exit, err := p.host.Run(ctx, r, &stdout, &stderr)
		done <- ran{exit, err, stdout.String(), stderr.String()}
	}()
	return done
}

func TestRun(t *testing.T) {
	p := newPeer(t, nil)
	first := p.run(t.Context(), Request{Kind: "command", User: "wbox", Text: "one"})
	select {
	case got := <-first:
		t.Fatalf("ran before PowerShell was ready: %+v", got)
	case <-time.After(20 * time.Millisecond):
	}
	p.say(`{"ready":true}`)
	if m := p.hear(); m["id"] != 1.0 || m["kind"] != "command" || m["user"] != "wbox" || m["text"] != "one" {
		t.Errorf("asked %v", m)
	}
	second := p.run(t.Context(), Request{Kind: "program", Program: "sc.exe", Args: []string{"query", "x"}})
	if m := p.hear(); m["id"] != 2.0 || m["program"] != "sc.exe" || len(m["args"].([]any)) != 2 {
		t.Errorf("asked %v", m)
	}
	// The answers come mixed.
	p.say(`{"id":1,"stream":"stdout","data":"a\r\n"}`)
	p.say(`{"id":2,"exit":5}`)
	p.say(`{"id":1,"stream":"stderr","data":"e"}`)
	p.say(`{"id":1,"stream":"stdout","data":"b"}`)
	p.say(`{"id":1,"exit":0}`)
	if got := <-second; got != (ran{exit: 5}) {
		t.Errorf("second: %+v", got)
	}
	if got := <-first; got != (ran{stdout: "a\r\nb", stderr: "e"}) {
		t.Errorf("first: %+v", got)
	}
}

func TestCall(t *testing.T) {
	p := newPeer(t, func(program string, args []string) Result {
		return Result{Exit: 7, Stdout: program + " " + strings.Join(args, " "), Stderr: "e"}
	})
	p.say(`{"call":3,"program":"hostname","args":["-x"]}`)
	if m := p.hear(); m["call"] != 3.0 || m["exit"] != 7.0 || m["stdout"] != "hostname -x" || m["stderr"] != "e" {
		t.Errorf("answered %v", m)
	}
}

func TestCancel(t *testing.T) {
	p := newPeer(t, nil)
	p.say(`{"ready":true}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := p.run(ctx, Request{Kind: "command"})
	p.hear()
	cancel()
	if m := p.hear(); m["id"] != 1.0 || m["cancel"] != true {
		t.Errorf("asked %v", m)
	}
	if got := <-done; !errors.Is(got.err, context.Canceled) || got.exit == 0 {
		t.Errorf("%+v", got)
	}
	p.say(`{"id":1,"exit":0}`) // too late, and for nobody
	p.run(t.Context(), Request{Kind: "command"})
	if m := p.hear(); m["id"] != 2.0 {
		t.Errorf("asked %v", m)
	}
}

func TestGone(t *testing.T) {
	for name, end := range map[string]func(*peer){
		"ended":   func(p *peer) { p.out.Close() },
		"garbage": func(p *peer) { p.say("not JSON") },
	} {
		p := newPeer(t, nil)
		p.say(`{"ready":true}`)
		done := p.run(t.Context(), Request{Kind: "command"})
		p.hear()
		end(p)
		if got := <-done; got.err == nil || got.exit == 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := p.host.Run(t.Context(), Request{}, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: a later request finds PowerShell", name)
		}
	}
}
