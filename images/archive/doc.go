// Package archive writes container images into one file that docker load, ctr
// images import, podman and skopeo take as it is: a tar that is an OCI image
// layout and, where it holds one platform only, a docker-archive as well, over
// the same blobs. Nothing is written anew on the way: every manifest, config and
// layer keeps its bytes and thereby its digest, and is checked against it. It
// imports nothing of ours but builder/fault and package images.
package archive
