package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// talk returns a monitor and the far end of its connection. The far end reads
// requests line by line and answers with what answer returns.
func talk(t *testing.T, greeting string, answer func(command string, id int64) string) (*monitor, func() []string) {
	t.Helper()
	near, far := net.Pipe()
	var mu sync.Mutex
	var events []string
	m := newMonitor(near, func(name string, data json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, name+string(data))
	})
	t.Cleanup(m.close)
	go func() {
		defer far.Close()
		fmt.Fprint(far, greeting)
		for in := bufio.NewScanner(far); in.Scan(); {
			var req struct {
				Execute string `json:"execute"`
				ID      int64  `json:"id"`
			}
			if err := json.Unmarshal(in.Bytes(), &req); err != nil {
				t.Errorf("the request is not JSON: %s", in.Text())
				return
			}
			out := answer(req.Execute, req.ID)
			if out == "hang up" {
				return
			}
			fmt.Fprint(far, out)
		}
	}()
	return m, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), events...)
	}
}

const hello = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": ["oob"]}}` + "\r\n"

func okay(_ string, id int64) string { return fmt.Sprintf(`{"return": {}, "id": %d}`+"\r\n", id) }

func TestMonitor(t *testing.T) {
	m, events := talk(t, hello, func(command string, id int64) string {
		switch command {
		case "query-status":
			return `{"event": "RESET", "data": {"guest": true}}` + "\r\n" +
				`{"return": "a stranger's", "id": 99}` + "\r\n" + `{"return": {}}` + "\r\n" +
				fmt.Sprintf(`{"id": %d, "return": {"status": "running"}}`+"\n\n", id)
		case "screendump":
			return fmt.Sprintf(`{"id": %d, "error": {"class": "GenericError", "desc": "no screen"}}`+"\n", id)
		}
		return okay(command, id)
	})
	if err := m.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	var status struct{ Status string }
	if err := m.execute(t.Context(), "query-status", nil, &status); err != nil || status.Status != "running" {
		t.Errorf("got %+v, %v", status, err)
	}
	var refused *qmpError
	if err := m.execute(t.Context(), "screendump", map[string]any{"filename": `C:\"x"`}, nil); !errors.As(err, &refused) || refused.Desc != "no screen" {
		t.Errorf("got %v, want QEMU's refusal", err)
	}
	if e := events(); len(e) != 1 || e[0] != `RESET{"guest": true}` {
		t.Errorf("events %q", e)
	}
}

func TestMonitorAnswersOutOfOrder(t *testing.T) {
	var held string
	m, _ := talk(t, hello, func(command string, id int64) string {
		out := fmt.Sprintf(`{"return": %q, "id": %d}`+"\n", command, id)
		if held == "" {
			held = out
			return ""
		}
		return out + held
	})
	var wg sync.WaitGroup
	for _, command := range []string{"first", "second"} {
		wg.Go(func() {
			var got string
			if err := m.execute(t.Context(), command, nil, &got); err != nil || got != command {
				t.Errorf("asked for %s, got %q, %v", command, got, err)
			}
		})
	}
	wg.Wait()
}

func TestMonitorFaults(t *testing.T) {
	for name, c := range map[string]struct {
		greeting string
		answer   func(string, int64) string
		want     string
	}{
		"no JSON":          {"HTTP/1.1 400 Bad Request\r\n", okay, "monitor"},
		"not a message":    {`{"hello": 1}` + "\n", okay, "no known kind"},
		"endless message":  {strings.Repeat("x", maxMessage+1), okay, "longer than"},
		"hangs up":         {hello, func(string, int64) string { return "hang up" }, "closed"},
		"wrong type of ID": {hello, func(string, int64) string { return `{"return": {}, "id": "x"}` + "\n" }, "monitor"},
		"refuses":          {hello, func(_ string, id int64) string { return fmt.Sprintf(`{"error": {"desc": "no"}, "id": %d}`+"\n", id) }, "no"},
	} {
		m, _ := talk(t, c.greeting, c.answer)
		if err := m.open(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestMonitorHeedsTheContext(t *testing.T) {
	cause := errors.New("the reason")
	for name, greeting := range map[string]string{"no greeting": "", "no answer": hello} {
		m, _ := talk(t, greeting, func(string, int64) string { return "" })
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
		if err := m.open(ctx); !errors.Is(err, cause) {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
		if len(m.waiting) != 0 {
			t.Errorf("%s: the question is not forgotten", name)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, seed := range []string{
		strings.TrimSpace(hello), `{"return": {}, "id": 1}`, `{"return": [], "id": -1}`,
		`{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}, "timestamp": {"seconds": 1, "microseconds": 2}}`,
		`{"error": {"class": "GenericError", "desc": "x"}, "id": 3}`, `{}`, `null`, `{"id": 1e400}`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseMessage(line)
		if err == nil && m.Greeting == nil && m.Event == "" && m.Return == nil && m.Error == nil {
			t.Errorf("an empty message is accepted: %q", line)
		}
	})
}

func TestSumActivity(t *testing.T) {
	var stats []blockStats
	answer := `[{"device": "disk", "parent": {"stats": {"rd_operations": 1000}},
		"stats": {"rd_operations": 1, "wr_operations": 20, "flush_operations": 300, "unmap_operations": 4000, "rd_bytes": 512}},
		{"device": "cd0", "stats": {"rd_operations": 50000}}, {}]`
	if err := json.Unmarshal([]byte(answer), &stats); err != nil {
		t.Fatal(err)
	}
	if got := sumActivity(stats); got != 54321 {
		t.Errorf("got %d", got)
	}
}

// TestAQEMUThatReadsNothing: however the end of the context is noticed, by the
// socket's deadline or by the context itself, the error is the context's.
func TestAQEMUThatReadsNothing(t *testing.T) {
	for range 20 {
		near, far := net.Pipe()
		m := newMonitor(near, func(string, json.RawMessage) {})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		err := m.execute(ctx, "cont", nil, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
		m.close()
		far.Close()
	}
}
