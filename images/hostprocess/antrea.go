package hostprocess

// Antrea returns the image of Antrea's agent for Windows nodes, under the name
// that antrea-windows.yml asks for. files holds antrea-agent.exe, antctl.exe
// and antrea-cni.exe, and may hold host-local.exe (of the CNI plugins; without
// it the node must have it in C:/opt/cni/bin), Install-OVS.ps1 and a folder
// openvswitch for antrea-windows-with-ovs.yml. field is the flag that a problem
// is about. The paths are those of build/images/Dockerfile.build.windows.
func Antrea(field string, files Files, version, revision string) (Image, error) {
	name, err := tagged("docker.io/antrea/antrea-windows", version, "")
	if err != nil {
		return Image{}, err
	}
	c := collection{from: files}
	c.want("antrea-agent.exe", "k/antrea/bin/antrea-agent.exe")
	c.want("antctl.exe", "k/antrea/bin/antctl.exe")
	c.want("antrea-cni.exe", "k/antrea/cni/antrea.exe")
	c.add("host-local.exe", "k/antrea/cni/host-local.exe")
	c.add("Install-OVS.ps1", "k/antrea/Install-OVS.ps1")
	c.tree("openvswitch", "openvswitch")
	if err := c.check(field, "Antrea", "build them with make windows-bin in Antrea's tree; they are in its bin folder"); err != nil {
		return Image{}, err
	}
	im := Image{Name: name, Title: "antrea-windows", Version: version, Revision: revision, Source: "https://github.com/antrea-io/antrea", Files: c.files}
	return im, checkPrograms(field, im.Files)
}
