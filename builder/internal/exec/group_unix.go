//go:build unix

package exec

import (
	"errors"
	"os"
	osexec "os/exec"
	"syscall"
)

// group is a child's process group: it takes in all that the child starts, and
// keeps a terminal's Ctrl-C away from it, which is ours to act on.
type group struct{}

func (group) prepare(cmd *osexec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	return nil
}

func (group) adopt(*os.Process) error { return nil }

// kill ends every process of the group, of which there may be none left.
func (group) kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		// EPERM is macOS's answer for a group of which only a zombie is left.
		return nil
	}
	return err
}

func (group) close() {}
