package faulttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/guest"
	guestfake "github.com/wbox-dev/wbox/builder/guest/fake"
	"github.com/wbox-dev/wbox/builder/hypervisor"
	hvfake "github.com/wbox-dev/wbox/builder/hypervisor/fake"
	"github.com/wbox-dev/wbox/scripts"
)

// Where a fake guest keeps its state on its disk: JSON, padded with zeros.
const (
	stateAt   = int64(200) << 20
	stateSize = int64(64) << 10
	// noiseSize is what each layer writes beside it, so that its disk has a size.
	noiseSize = int64(256) << 10
)

// machines are fake machines whose guests live on their disks. Layout names an
// image with the partitions that Setup makes, Journal a file that gets a line
// "NAME DIGEST" for every seed CD that a machine is given.
type machines struct {
	Layout, Journal string

	alive   sync.Mutex // held while a guest does anything
	fake    *hvfake.Driver
	mu      sync.Mutex
	current *running // the engine runs one at a time; it stays through a reboot
}

// driver starts machines that are gone once they were killed: a fake's guest is
// a goroutine, which would write on for a moment.
type driver struct {
	*hvfake.Driver
	l *machines
}

func (d driver) Start(ctx context.Context, cfg hypervisor.Config) (hypervisor.Machine, error) {
	m, err := d.Driver.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return machine{m, d.l}, nil
}

type machine struct {
	hypervisor.Machine
	l *machines
}

func (m machine) Kill() error {
	err := m.Machine.Kill()
	m.l.alive.Lock()
	defer m.l.alive.Unlock()
	return err
}

// running is a guest that is up.
type running struct {
	*guestfake.Guest
	*state
	off chan struct{} // closed once it turned itself off
}

// driver returns the driver, and what reaches its guests.
func (l *machines) driver() (hypervisor.Driver, func(context.Context, netip.AddrPort, guest.Access, bool) (guest.Conn, error)) {
	l.fake = hvfake.New(l.boot)
	return driver{l.fake, l}, func(ctx context.Context, _ netip.AddrPort, _ guest.Access, _ bool) (guest.Conn, error) {
		if g := l.get(); g != nil {
			return g.Dial(ctx)
		}
		return nil, errors.New("connection refused: the fake guest is not up")
	}
}

func (l *machines) boot(ctx context.Context, m *hvfake.Guest) {
	l.alive.Lock()
	defer l.alive.Unlock()
	err := l.live(ctx, m)
	if err == nil || ctx.Err() != nil {
		return
	}
	l.set(nil)
	all := l.fake.Machines()
	p := &fault.Problem{Class: fault.Host, Field: "disk", Value: m.Config.Disk, Why: "the fake machine can't work on it", Err: err}
	if strings.Contains(strings.ToLower(err.Error()), "no space left on device") { // as QEMU's driver says it
		p.Why, p.Fix = "the file system that holds it is full", "make room there, or keep the store elsewhere"
	}
	all[len(all)-1].Crash(p)
}

// live is one boot.
func (l *machines) live(ctx context.Context, m *hvfake.Guest) error {
	seed := m.Config.Media[len(m.Config.Media)-1]
	if m.Boot == 1 {
		if err := l.note(m.Config.Name, seed); err != nil {
			return err
		}
	}
	if m.Config.BootMedia && m.Boot == 1 {
		if err := l.install(ctx, m.Config.Disk); err != nil {
			return err
		}
		m.Reset()
		return nil
	}
	g := l.get()
	if g == nil {
		s, err := readState(ctx, m.Config)
		if err != nil {
			return err
		}
		g = s.guest()
		l.set(g)
	}
	rebooted, ok := g.wait(ctx, m)
	if !ok {
		l.set(nil)
		return nil
	}
	if err := g.write(ctx, m.Config); err != nil {
		return err
	}
	if rebooted {
		m.Reset()
		return nil
	}
	l.set(nil)
	m.PowerOff()
	return nil
}

// wait returns once the guest goes down for a reboot, or for good; ok is false
// where its machine ended under it.
func (g *running) wait(ctx context.Context, m *hvfake.Guest) (rebooted, ok bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for boots := g.Boots(); ; m.Work(1) {
		select {
		case <-ctx.Done():
			return false, false
		case <-g.off:
			return false, true
		case <-g.Off():
			return false, true
		case <-tick.C:
			if g.Boots() != boots {
				return true, true
			}
		}
	}
}

func (l *machines) get() *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

func (l *machines) set(g *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = g
}

// secrets are what a seed has anew each time, and only the installation's.
var secrets = regexp.MustCompile(`(?s)<(Administrator)?Password>.*?</(Administrator)?Password>`)

// note writes down what a machine was given. An installation's seed holds a
// new password and certificate each time; of it the answer file counts, the
// passwords left out.
func (l *machines) note(name, seed string) error {
	data, err := os.ReadFile(seed)
	if err != nil {
		return err
	}
	if _, rest, ok := bytes.Cut(data, []byte("<unattend ")); ok {
		data, _, _ = bytes.Cut(rest, []byte("</unattend>"))
		data = secrets.ReplaceAll(data, nil)
	}
	sum := sha256.Sum256(data)
	f, err := os.OpenFile(l.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s\n", name, hex.EncodeToString(sum[:]))
	return err
}

// install puts what Setup leaves onto an empty disk.
func (l *machines) install(ctx context.Context, disk string) error {
	return program(ctx, "qemu-img", "convert", "-q", "-n", "--target-is-zero", "-f", "qcow2", "-O", "qcow2", l.Layout, disk)
}

// state is what a guest remembers on its disk.
type state struct {
	Set map[string]int `json:"set"` // script -> layers written when it was set
	// Layers are the machines that wrote to the disk, in order.
	Layers []string `json:"layers"`

	mu sync.Mutex
}

func readState(ctx context.Context, cfg hypervisor.Config) (*state, error) {
	path := filepath.Join(cfg.Dir, "state")
	err := program(ctx, "qemu-img", "dd", "-f", "qcow2", "-O", "raw", "bs="+strconv.FormatInt(stateSize, 10), "count="+strconv.FormatInt(stateAt/stateSize+1, 10),
		"skip="+strconv.FormatInt(stateAt/stateSize, 10), "if="+cfg.Disk, "of="+path)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &state{Set: map[string]int{}}
	if data = bytes.TrimRight(data, "\x00"); len(data) == 0 {
		return s, nil
	}
	return s, json.Unmarshal(data, s)
}

// write saves the state, and some data that only this layer has.
func (s *state) write(ctx context.Context, cfg hypervisor.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Layers = append(s.Layers, cfg.Name)
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(cfg.Dir, "state")
	if err := os.WriteFile(path, append(data, make([]byte, stateSize-int64(len(data)))...), 0o600); err != nil {
		return err
	}
	noise, seed := make([]byte, noiseSize), sha256.Sum256([]byte(strings.Join(s.Layers, " ")))
	rand.NewChaCha8(seed).Read(noise) //nolint:errcheck // it never fails
	if err := os.WriteFile(path+".noise", noise, 0o600); err != nil {
		return err
	}
	at := stateAt + stateSize + int64(len(s.Layers))*noiseSize
	return program(ctx, "qemu-io", "-f", "qcow2", "-c", fmt.Sprintf("write -q -s %s %d %d", path, stateAt, stateSize),
		"-c", fmt.Sprintf("write -q -s %s.noise %d %d", path, at, noiseSize), cfg.Disk)
}

// guest returns a guest that has this state.
func (s *state) guest() *running {
	g := &running{guestfake.New(), s, make(chan struct{})}
	entries, err := scripts.Guest.ReadDir("guest")
	if err != nil {
		panic(err) // they are embedded
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".ps1")
		if !ok || name < "10" || name > "99" {
			continue // no script with a state
		}
		g.Scripts[name] = func(r guestfake.Run) guestfake.Reply { return s.run(r, g.off) }
	}
	return g
}

// rebooting are scripts whose state is there after a reboot only.
const rebooting = "20-install-features"

func (s *state) run(r guestfake.Run, down chan struct{}) guestfake.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, set := s.Set[r.Name]
	switch {
	case r.Mode == guest.Set:
		s.Set[r.Name] = len(s.Layers)
		if r.Name == "90-generalize" {
			time.AfterFunc(5*time.Millisecond, func() { close(down) })
		}
		return guestfake.Reply{State: guest.Present, Reboot: r.Name == rebooting}
	case !set, r.Name == rebooting && since == len(s.Layers):
		return guestfake.Reply{State: guest.Absent, Message: "it is not on this disk"}
	}
	reply := guestfake.Reply{State: guest.Present}
	if r.Name == "14-check-licence" && r.Mode == guest.Test {
		now := clock().UTC().Format(time.RFC3339)
		reply.Facts = map[string]any{"edition": "ServerDatacenterEval", "evaluation": true, "installed": now, "now": now, "licenseStatus": 1}
	}
	return reply
}

// program runs a tool that dies with this process.
func program(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}
