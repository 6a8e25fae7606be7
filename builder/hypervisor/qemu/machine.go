package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// answerTimeout bounds questions that QEMU answers at once, where the caller's
// context would let us wait longer.
const answerTimeout = 10 * time.Second

// Machine is one running QEMU.
type Machine struct {
	cfg    hypervisor.Config
	ports  map[string]int
	proc   *exec.Process
	mon    *monitor
	resets atomic.Int64
	killed atomic.Bool
	done   chan struct{}
	err    error // valid once done is closed

	password string // of the console; set before the machine is handed out

	mu       sync.Mutex
	fault    error // why we ended the machine
	guestOff bool  // the guest has switched itself off
}

// newMachine watches over a QEMU that has just been started, until it ends.
func newMachine(cfg hypervisor.Config, host Host, proc *exec.Process, conn net.Conn) *Machine {
	m := &Machine{cfg: cfg, ports: host.Ports, proc: proc, done: make(chan struct{})}
	ready := make(chan struct{})
	m.mon = newMonitor(conn, func(name string, data json.RawMessage) {
		<-ready // m.mon is set
		m.event(name, data)
	})
	close(ready)
	go m.watch()
	return m
}

// run opens the monitor and lets the guest's processors go.
func (m *Machine) run(ctx context.Context) error {
	if err := m.mon.open(ctx); err != nil {
		return err
	}
	return m.mon.execute(ctx, "cont", nil, nil)
}

// watch waits for QEMU's end and finds out what it meant.
func (m *Machine) watch() {
	<-m.proc.Done()
	// The last events may still be on their way.
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-m.mon.closed:
	case <-late.C:
		m.mon.close()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = m.verdict()
	close(m.done)
}

func (m *Machine) verdict() error {
	switch {
	case m.fault != nil:
		return m.fault
	case m.killed.Load(), m.guestOff && m.proc.Err() == nil:
		return nil
	case m.proc.Err() != nil:
		return fmt.Errorf("running the machine %s: %w", m.cfg.Name, m.proc.Err())
	}
	return fmt.Errorf("running the machine %s: QEMU was ended from outside: %s", m.cfg.Name, m.proc.Output())
}

// event takes notice of what QEMU reports by itself.
func (m *Machine) event(name string, data json.RawMessage) {
	switch name {
	case "RESET":
		m.resets.Add(1)
	case "SHUTDOWN":
		var d struct {
			Guest bool `json:"guest"`
		}
		if json.Unmarshal(data, &d) == nil && d.Guest {
			m.mu.Lock()
			m.guestOff = true
			m.mu.Unlock()
		}
	case "BLOCK_IO_ERROR":
		var d struct {
			Action  string `json:"action"`
			NoSpace bool   `json:"nospace"`
			Reason  string `json:"reason"`
		}
		if json.Unmarshal(data, &d) == nil && d.Action == "stop" {
			m.fail(diskProblem(m.cfg.Disk, d.NoSpace, d.Reason))
		}
	case "SUSPEND":
		// It sleeps although its firmware offers no sleep.
		go m.wake()
	case "STOP":
		// Nobody here pauses guests: QEMU does where it can't go on, and would
		// wait for ever.
		go m.stopped()
	}
}

func diskProblem(disk string, noSpace bool, reason string) error {
	if noSpace {
		return &fault.Problem{Class: fault.Host, Field: "disk", Value: disk,
			Why: "the file system that holds it is full", Fix: "make room there, or keep the store elsewhere"}
	}
	return &fault.Problem{Class: fault.Host, Field: "disk", Value: disk,
		Why: "this host could not read or write it: " + reason, Fix: "look at this host's disk"}
}

// wake wakes a guest that has put itself to sleep.
func (m *Machine) wake() {
	m.ask(context.Background(), "system_wakeup", nil, nil) //nolint:errcheck // a guest that sleeps on is noticed by its silence
}

// stopped finds out why QEMU has paused the guest, and ends it.
func (m *Machine) stopped() {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	var status struct {
		Running bool   `json:"running"`
		Status  string `json:"status"`
	}
	err := m.mon.execute(ctx, "query-status", nil, &status)
	switch {
	case err != nil || status.Running || status.Status == "shutdown":
		return // it ends, or goes on
	case status.Status == "io-error":
		m.fail(diskProblem(m.cfg.Disk, false, "input/output error"))
	default:
		m.fail(fmt.Errorf("running the machine %s: QEMU has paused the guest for good (%s): %s",
			m.cfg.Name, status.Status, m.proc.Output()))
	}
}

// fail ends the machine for a reason, of which the first counts.
func (m *Machine) fail(err error) {
	m.mu.Lock()
	if m.fault == nil && !m.killed.Load() {
		m.fault = err
	}
	m.mu.Unlock()
	m.proc.Kill()
}

// Endpoint returns the port of 127.0.0.1 that leads to a forwarded guest port.
func (m *Machine) Endpoint(name string) (netip.AddrPort, error) {
	port, ok := m.ports[name]
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("the machine %s forwards no port named %q", m.cfg.Name, name)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
}

// Done is closed once QEMU has ended.
func (m *Machine) Done() <-chan struct{} { return m.done }

// Err says, after Done, why the machine ended. See hypervisor.Machine.
func (m *Machine) Err() error { return m.err }

// Resets counts the guest's resets.
func (m *Machine) Resets() int { return int(m.resets.Load()) }

// Activity sums up what the guest has done so far: operations on its drives,
// bytes of its serial log, resets. When the machine is off the error wraps
// hypervisor.ErrPoweredOff.
func (m *Machine) Activity(ctx context.Context) (uint64, error) {
	var stats []blockStats
	if err := m.ask(ctx, "query-blockstats", nil, &stats); err != nil {
		return 0, err
	}
	sum := sumActivity(stats) + uint64(m.resets.Load())
	if info, err := os.Stat(m.cfg.SerialLog); err == nil {
		sum += uint64(info.Size())
	}
	return sum, nil
}

// blockStats is a drive's part of the answer to query-blockstats.
type blockStats struct {
	Stats struct {
		ReadOps  uint64 `json:"rd_operations"`
		WriteOps uint64 `json:"wr_operations"`
		FlushOps uint64 `json:"flush_operations"`
		TrimOps  uint64 `json:"unmap_operations"`
	} `json:"stats"`
}

func sumActivity(drives []blockStats) uint64 {
	var sum uint64
	for _, d := range drives {
		sum += d.Stats.ReadOps + d.Stats.WriteOps + d.Stats.FlushOps + d.Stats.TrimOps
	}
	return sum
}

// PowerDown presses the guest's power button.
func (m *Machine) PowerDown(ctx context.Context) error {
	return m.ask(ctx, "system_powerdown", nil, nil)
}

// Kill ends QEMU. What the guest has not flushed to its disk is lost.
func (m *Machine) Kill() error {
	select {
	case <-m.done:
		return nil
	default:
	}
	m.killed.Store(true)
	if err := m.proc.Kill(); err != nil {
		return err
	}
	<-m.done
	return nil
}

// ask runs a monitor command that does not take long.
func (m *Machine) ask(ctx context.Context, command string, args map[string]any, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout,
		fmt.Errorf("QEMU has not answered within %v", answerTimeout))
	defer cancel()
	err := m.mon.execute(ctx, command, args, result)
	if errors.Is(err, errHangup) {
		return fmt.Errorf("%w: %w", hypervisor.ErrPoweredOff, err)
	}
	return err
}
