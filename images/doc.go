// Package images knows container images: which ones a version of Kubernetes
// needs and under which names, how to copy them between registries without
// changing a digest, and how to keep them in files. It is a library on
// go-containerregistry and of our own packages it imports only builder/report
// and builder/fault: it must not know where Kubernetes comes from, nor a box, a
// stage or the store (a Cache is passed in).
//
// Reading order: manifest.go (what an image is made of), source.go (where one
// lies), client.go (who talks to registries) with conn.go, retry.go and
// request.go below it, copy.go (one image from a Source to a registry), list.go
// (what a cluster needs), mirror.go (all of that to one place).
//
// Words: a Reference is a name with a tag or a digest. An Image is something
// that a cluster needs, with the names under which it is asked for. A manifest
// lists the blobs (a config and layers) of one platform; an index lists
// manifests, one a platform. A Source gives the content of one image. Mounting
// makes a blob of one repository known in another one of the same registry
// without moving a byte. A tag is written last, after everything that it leads
// to, so that nobody ever sees half an image.
package images
