// Package controlplane makes the container images of Kubernetes' control plane
// from static Linux programs, without Docker: each program under the path, with
// the starter and the rights that the official images give it
// (build/server-image in Kubernetes' tree), on an empty base. What that base
// lacks is said at Needs. It imports nothing of ours but builder/fault and what is
// below images, and does not know where the programs come from.
package controlplane
