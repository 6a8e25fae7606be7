package exec

import (
	"errors"
	osexec "os/exec"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Look finds a program in PATH, or checks the path that is given. Where there
// is none the error is a *fault.Problem of class Host that says which package
// to install.
func Look(program string) (path string, err error) {
	path, err = osexec.LookPath(program)
	if err == nil {
		return path, nil
	}
	why, fix := "this program is not in PATH", "install it, or put its folder into PATH"
	switch {
	case errors.Is(err, osexec.ErrDot):
		why = "this program is in the current folder only, from where it is not run"
	case program != filepath.Base(program):
		why, fix = "there is no program that can be run at this path", "correct the path, or install the program"
	}
	if pkg := debianPackage(programName([]string{program})); pkg != "" {
		fix = "install it (on Debian and Ubuntu: sudo apt install --no-install-recommends " + pkg + ")"
	}
	return "", &fault.Problem{Class: fault.Host, Field: "program", Value: program, Why: why, Fix: fix}
}

// debianPackage names the Debian package that a program of ours comes in.
func debianPackage(program string) string {
	switch program {
	case "qemu-system-x86_64":
		return "qemu-system-x86 qemu-utils ovmf"
	case "qemu-img", "qemu-nbd", "qemu-io":
		return "qemu-utils"
	case "git", "xorriso", "genisoimage", "vagrant", "wine":
		return program
	case "wimlib-imagex":
		return "wimtools"
	}
	return ""
}
