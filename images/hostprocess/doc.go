// Package hostprocess makes Windows container images that run nowhere but as
// HostProcess containers, of programs that somebody else compiled: kube-proxy of
// an unreleased Kubernetes, and the nodes' part of Antrea and Calico. The base
// is made here too, of a few kilobytes, so that no registry is needed. Images
// have no os.version and are in no index, so that any Windows Server takes
// them (containerd#7431). It imports nothing of ours but builder/fault and
// what is below images.
package hostprocess
