// Package build makes the images of one ref of Kubernetes, and of a network
// plugin, that nobody publishes: of the control plane for Linux and of Windows
// nodes, from programs that lie in folders. It puts together what the packages
// controlplane and hostprocess make, imports nothing of ours but builder/fault
// and what is below images, and doesn't know where the programs come from.
package build
