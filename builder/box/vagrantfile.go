package box

import (
	"bytes"
	"fmt"
	"text/template"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/templates"
)

// Hardware is what a box asks Vagrant for; its user can override it.
type Hardware struct {
	CPUs      int // default 2
	MemoryMiB int // default 4096
}

const libvirtTemplate = "libvirt.Vagrantfile.tmpl"

// LibvirtVagrantfile returns the Vagrantfile that goes into a libvirt box.
func LibvirtVagrantfile(h Hardware) ([]byte, error) {
	if h.CPUs == 0 {
		h.CPUs = 2
	}
	if h.MemoryMiB == 0 {
		h.MemoryMiB = 4096
	}
	if h.CPUs < 1 || h.MemoryMiB < 512 {
		return nil, &fault.Problem{Class: fault.Usage, Field: "box hardware", Value: fmt.Sprintf("%+v", h),
			Why: "Windows needs a processor and 512 MiB at least", Fix: "ask for more"}
	}
	t, err := template.ParseFS(templates.FS, "vagrant/"+libvirtTemplate)
	if err != nil {
		return nil, fmt.Errorf("reading the Vagrantfile's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, libvirtTemplate, h); err != nil {
		return nil, fmt.Errorf("rendering the Vagrantfile: %w", err)
	}
	return out.Bytes(), nil
}
