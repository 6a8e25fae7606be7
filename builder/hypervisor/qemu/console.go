package qemu

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/hypervisor"
	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// consoleFile is the file in Config.Dir from which QEMU reads the password.
const consoleFile = "console.secret"

// passwordSize is all that VNC uses of a password: eight characters.
const passwordSize = 8

// consoleSecret makes a password for the console and the file that holds it: a
// port of 127.0.0.1 is open to every user of this host.
func consoleSecret(ctx context.Context, dir string) (file, password string, err error) {
	password = rand.Text()[:passwordSize]
	file = filepath.Join(dir, consoleFile)
	if err := atomicfile.Write(ctx, file, []byte(password), 0o600); err != nil {
		return "", "", fmt.Errorf("making the console's password: %w", err)
	}
	return file, password, nil
}

// Console asks QEMU which port its VNC server has found free.
func (m *Machine) Console(ctx context.Context) (hypervisor.Console, error) {
	if m.password == "" {
		return hypervisor.Console{}, errors.New("the machine was started without a console")
	}
	var vnc struct {
		Enabled bool   `json:"enabled"`
		Host    string `json:"host"`
		Service string `json:"service"`
	}
	if err := m.ask(ctx, "query-vnc", nil, &vnc); err != nil {
		return hypervisor.Console{}, err
	}
	if !vnc.Enabled || vnc.Service == "" {
		return hypervisor.Console{}, errors.New("asking QEMU for the console: it has none")
	}
	return hypervisor.Console{URL: "vnc://" + net.JoinHostPort(vnc.Host, vnc.Service), Password: m.password}, nil
}
