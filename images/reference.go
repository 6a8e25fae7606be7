package images

import (
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Reference is the name of an image with a tag or a digest, such as
// "registry.k8s.io/pause:3.10.2".
type Reference = name.Reference

// Parse reads a reference. It must name its registry and a tag or digest: what
// Docker would add ("index.docker.io/library", ":latest") is never meant here.
// field is the flag or setting that the text comes from; what can't be meant
// is a *fault.Problem of class fault.Usage.
func (c *Client) Parse(field, text string) (Reference, error) {
	ref, err := name.ParseReference(text, c.nameOptions(text)...)
	if err == nil {
		return ref, nil
	}
	return nil, &fault.Problem{Class: fault.Usage, Field: field, Value: text, Why: "is no name of an image", Err: err,
		Fix: "write it as REGISTRY/REPOSITORY:TAG, such as registry.k8s.io/pause:3.10.2"}
}

// ParsePrefix reads REGISTRY[/PATH], the part of a name that images have in
// common. Errors are as of Parse.
func (c *Client) ParsePrefix(field, text string) (string, error) {
	prefix := strings.TrimRight(text, "/")
	bad := &fault.Problem{Class: fault.Usage, Field: field, Value: text, Why: "names no place in a registry", Fix: "write it as REGISTRY[/PATH], such as registry.example.com/k8s"}
	if strings.Contains(prefix, "://") {
		bad.Fix = "leave the scheme out; --plain-http HOST says that a registry has no TLS"
		return "", bad
	}
	host, path, _ := strings.Cut(prefix, "/")
	if !strings.ContainsAny(host, ".:") && host != "localhost" {
		bad.Why = "names no registry: its first part has neither a dot nor a port"
		return "", bad
	}
	if strings.ContainsAny(path, ":@") {
		bad.Why = "has a tag or digest, which come from the images"
		return "", bad
	}
	if _, err := name.NewRepository(prefix+"/x", c.nameOptions(prefix)...); err != nil {
		bad.Err = err
		return "", bad
	}
	return prefix, nil
}

// nameOptions are strict, and know which registries have no TLS.
func (c *Client) nameOptions(text string) []name.Option {
	host, _, _ := strings.Cut(text, "/")
	if slices.Contains(c.opts.PlainHTTP, host) {
		return []name.Option{name.StrictValidation, name.Insecure}
	}
	return []name.Option{name.StrictValidation}
}
