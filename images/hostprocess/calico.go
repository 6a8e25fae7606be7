package hostprocess

import (
	"path"
	"strings"
)

// Calico returns the images of Calico for Windows nodes, node and CNI, under the
// names that the operator asks for. files holds calico.exe (from v3.33 on), or
// calico-node.exe, calico.exe, calico-ipam.exe and install.exe, and the folder
// CalicoWindows of node/windows-packaging in Calico's tree; further .exe files,
// such as flannel.exe, go to the CNI image, as there. field is the flag that a
// problem is about. The paths are those of node/Dockerfile-windows and
// cni-plugin/Dockerfile-windows, the base is another: Calico's own images are on
// nanoserver, which a HostProcess container doesn't need.
func Calico(field string, files Files, version, revision string) ([]Image, error) {
	registry := calicoRegistry(version)
	nodeName, err := tagged(registry+"/calico/node-windows", version, "")
	if err != nil {
		return nil, err
	}
	cniName, err := tagged(registry+"/calico/cni-windows", version, "")
	if err != nil {
		return nil, err
	}
	one := files.find("calico-node.exe") == "" // one program for everything
	const hint = "put the programs and the folder node/windows-packaging/CalicoWindows of Calico's tree into one folder"
	const source = "https://github.com/projectcalico/calico"
	node := collection{from: files}
	addCalicoNode(&node, one)
	if err := node.check(field, "Calico's node", hint); err != nil {
		return nil, err
	}
	cni := collection{from: files}
	cmd := addCalicoCNI(&cni, one)
	if err := cni.check(field, "Calico's CNI", hint); err != nil {
		return nil, err
	}
	out := []Image{
		{Name: nodeName, Title: "calico node for Windows", Version: version, Revision: revision, Source: source, Files: node.files,
			Path: []string{`C:\CalicoWindows`}, Entrypoint: []string{"powershell"}, WorkingDir: "/CalicoWindows"},
		{Name: cniName, Title: "calico CNI for Windows", Version: version, Revision: revision, Source: source, Files: cni.files,
			Path: []string{"/opt/cni/bin"}, Cmd: cmd, WorkingDir: "/opt/cni/bin"},
	}
	for _, im := range out {
		if err := checkPrograms(field, im.Files); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// calicoRegistry is where the operator of a version asks for images: quay.io
// since v3.31 (image names in manifests/calico.yaml of v3.30.7 and v3.31.0).
func calicoRegistry(version string) string {
	if major, minor, ok := minorOf(version); ok && (major < 3 || major == 3 && minor <= 30) {
		return "docker.io"
	}
	return "quay.io"
}

func addCalicoNode(c *collection, one bool) {
	const scripts = "CalicoWindows/"
	program := "calico-node.exe"
	if one {
		program = "calico.exe"
	}
	c.want(program, "CalicoWindows/"+program)
	for _, f := range [][2]string{{"felix/felix-service.ps1", "felix-service.ps1"}, {"node/node-service.ps1", "node-service.ps1"}, {"config-hpc.ps1", "config.ps1"},
		{"libs/calico/calico.psm1", "libs/calico/calico.psm1"}, {"libs/hns/hns.psm1", "libs/hns/hns.psm1"}} {
		c.want(scripts+f[0], "CalicoWindows/"+f[1])
	}
	c.want(scripts+"uninstall-calico-hpc.ps1", "uninstall-calico.ps1")
	c.tree("CalicoWindows/confd", "CalicoWindows/confd")
	c.add("nssm.exe", "nssm.exe") // for BGP's confd service
}

// addCalicoCNI adds the programs that the CNI image installs and returns the
// command that does.
func addCalicoCNI(c *collection, one bool) []string {
	const dir = "opt/cni/bin/"
	cmd := []string{"/opt/cni/bin/install.exe"}
	wanted := []string{"calico.exe", "calico-ipam.exe", "install.exe"}
	if one {
		wanted, cmd = wanted[:1], []string{"/opt/cni/bin/calico.exe", "component", "cni", "install"}
	}
	for _, name := range wanted {
		c.want(name, dir+name)
	}
	not := append([]string{"calico-node.exe", "nssm.exe"}, wanted...)
	for _, name := range sortedNames(c.from) {
		if path.Dir(name) == "." && strings.EqualFold(path.Ext(name), ".exe") && !containsFold(not, name) {
			c.want(name, dir+name)
		}
	}
	return cmd
}
