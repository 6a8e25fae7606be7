package network

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Registry says where containerd pulls the images of one registry from.
type Registry struct {
	Host       string   // as in an image's name, such as "docker.io" or "registry.lan:5000"; "_default" stands for all that are not named
	Mirrors    []string // URLs that are tried in this order before the registry itself; a path is a prefix of repositories
	PlainHTTP  bool     // the registry itself speaks HTTP only
	CA         string   // a file of certificates (PEM) for the registry and its mirrors
	SkipVerify bool     // their certificates are not checked, which is for trials only
}

var registryHost = regexp.MustCompile(`^(_default|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?|\[[0-9a-fA-F:]+\](:[0-9]{1,5})?)$`)

// ParseRegistry reads the form of a flag:
//
//	HOST[=MIRROR...][,ca=FILE][,plain-http][,skip-verify]
//
// with more mirrors after commas. What makes no sense is a *fault.Problem of
// class fault.Usage.
func ParseRegistry(text string) (Registry, error) {
	refuse := func(why string) error {
		return bad("--registry", text, why, "write it as docker.io=https://mirror.example.com, with ,ca=FILE or ,skip-verify where it needs that")
	}
	var r Registry
	parts := strings.Split(text, ",")
	host, mirror, hasMirror := strings.Cut(parts[0], "=")
	r.Host = strings.TrimSpace(host)
	if hasMirror {
		parts[0] = mirror
	} else {
		parts = parts[1:]
	}
	for _, p := range parts {
		switch p = strings.TrimSpace(p); {
		case p == "plain-http":
			r.PlainHTTP = true
		case p == "skip-verify":
			r.SkipVerify = true
		case strings.HasPrefix(p, "ca="):
			if r.CA != "" {
				return r, refuse("names two files of certificates")
			}
			if r.CA = p[len("ca="):]; r.CA == "" {
				return r, refuse("names no file of certificates")
			}
		case strings.Contains(p, "://"):
			r.Mirrors = append(r.Mirrors, p)
		default:
			return r, refuse(fmt.Sprintf("has a part that is not known: %q", p))
		}
	}
	return r, nil
}

// String is the form that ParseRegistry reads.
func (r Registry) String() string {
	out := r.Host
	for i, m := range r.Mirrors {
		out += map[bool]string{true: "=", false: ","}[i == 0] + m
	}
	if r.CA != "" {
		out += ",ca=" + r.CA
	}
	if r.PlainHTTP {
		out += ",plain-http"
	}
	if r.SkipVerify {
		out += ",skip-verify"
	}
	return out
}

func (r Registry) validate() error {
	var problems []error
	refuse := func(value, why, fix string) { problems = append(problems, bad("--registry", value, why, fix)) }
	if !registryHost.MatchString(r.Host) {
		refuse(r.Host, "is not a registry's name", "write it as in an image's name: docker.io, or registry.lan:5000, without https://")
	}
	for _, m := range r.Mirrors {
		switch u, err := url.Parse(m); {
		case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
			refuse(redact(m), "is not the URL of a mirror", "write it as https://mirror.example.com, or http:// where it has no TLS")
		case u.User != nil:
			refuse(r.Host, "has a mirror with a user name or a password, which every user of the node could read", "use an imagePullSecret of the cluster")
		case u.RawQuery != "" || u.Fragment != "":
			refuse(redact(m), "has more than a host, a port and a path", "write it as https://mirror.example.com/prefix")
		}
	}
	if len(r.Mirrors) == 0 && !r.PlainHTTP && r.CA == "" && !r.SkipVerify {
		refuse(r.Host, "says nothing about it", "add a mirror, ca=FILE, plain-http or skip-verify")
	}
	if r.Host == "_default" && r.PlainHTTP {
		refuse(r.Host, "stands for all registries, and can't make them all plain HTTP", "name the registry that speaks HTTP")
	}
	if r.CA != "" {
		if _, err := readCA("--registry", r.CA); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// folder is the name of the registry's folder in certs.d. Windows allows no
// colon in it; containerd looks for host_port_ and takes out any other colon
// (core/remotes/docker/config of containerd).
func (r Registry) folder() string {
	name := r.Host
	if i := strings.LastIndex(name, ":"); i > 0 && !strings.HasSuffix(name, "]") {
		name = name[:i] + "_" + name[i+1:] + "_"
	}
	return strings.ReplaceAll(name, ":", "")
}

// server is the registry's own address.
func (r Registry) server() string {
	switch {
	case r.Host == "_default":
		return "" // each registry's own
	case r.Host == "docker.io":
		return "https://registry-1.docker.io"
	case r.PlainHTTP:
		return "http://" + r.Host
	}
	return "https://" + r.Host
}

// hostsTOML renders the registry's hosts.toml; ca is where its certificates lie
// in the node. A mirror with a path gets the API's own prefix before that path,
// as registries with projects have it (docs/hosts.md of containerd).
func (r Registry) hostsTOML(ca string) string {
	var b strings.Builder
	trust := func(scheme, indent string) {
		// With either of these containerd tries TLS before plain HTTP.
		if scheme == "http" {
			return
		}
		if r.CA != "" {
			fmt.Fprintf(&b, "%sca = %q\n", indent, ca)
		}
		if r.SkipVerify {
			fmt.Fprintf(&b, "%sskip_verify = true\n", indent)
		}
	}
	if server := r.server(); server != "" {
		fmt.Fprintf(&b, "server = %q\n", server)
	}
	trust(map[bool]string{true: "http", false: "https"}[r.PlainHTTP], "")
	for _, m := range r.Mirrors {
		u, err := url.Parse(m)
		if err != nil {
			continue // validate has refused it
		}
		prefix := strings.Trim(u.Path, "/")
		u.Path = ""
		if prefix != "" {
			u.Path = "/v2/" + strings.TrimPrefix(prefix, "v2/")
		}
		fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", u.String())
		if prefix != "" {
			b.WriteString("  override_path = true\n")
		}
		trust(u.Scheme, "  ")
	}
	return b.String()
}
