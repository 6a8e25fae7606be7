// Package network is what a build and a node are told of the network around
// them: registries' mirrors, a proxy, certificate authorities. It makes of that
// a transport and an environment for downloads on the host, and a file from
// which Set-WboxNetwork.ps1 sets up a node. Nothing of it decides what a box
// holds, so that it is in no key; a proxy's password is in no message either.
// It must not import spec, stage, a stage or another capability.
package network

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
)

// Settings are what a user says about the network. The zero value is a network
// that needs nothing: then the environment's proxy is used on the host, and
// nothing is set up in a node.
type Settings struct {
	Proxy           string     // URL of an HTTP proxy, for HTTP and HTTPS; may hold a user name and a password
	NoProxy         []string   // hosts, domains, addresses and networks that are reached without it
	ClusterNetworks []string   // the cluster's pod and service networks, which never go through the proxy
	ExtraCAs        []string   // files of certificates (PEM) that are trusted beside the system's
	Registries      []Registry // where containerd pulls from instead
}

// Empty says whether nothing is asked for.
func (s Settings) Empty() bool {
	return s.Proxy == "" && len(s.NoProxy) == 0 && len(s.ClusterNetworks) == 0 && len(s.ExtraCAs) == 0 && len(s.Registries) == 0
}

// Node says whether there is anything that a node would have to be told.
func (s Settings) Node() bool { return s.Proxy != "" || len(s.ExtraCAs) > 0 || len(s.Registries) > 0 }

// Validate returns every problem, joined: *fault.Problem of class fault.Usage
// for values, of class fault.Input for files. It reads the files of
// certificates and nothing else.
func (s Settings) Validate() error {
	var problems []error
	if s.Proxy != "" {
		if _, err := s.proxyURL(); err != nil {
			problems = append(problems, err)
		}
	}
	for _, n := range s.NoProxy {
		if !noProxyEntry.MatchString(n) {
			problems = append(problems, bad("--no-proxy", n, "is neither a host nor a network", "write it as registry.lan, .example.com, 10.0.0.7 or 10.0.0.0/8"))
		}
	}
	for _, n := range s.ClusterNetworks {
		if _, err := netip.ParsePrefix(n); err != nil {
			problems = append(problems, bad("--cluster-network", n, "is not a network", "write it as 10.244.0.0/16"))
		}
	}
	for _, file := range s.ExtraCAs {
		if _, err := readCA("--extra-ca", file); err != nil {
			problems = append(problems, err)
		}
	}
	seen := map[string]bool{}
	for _, r := range s.Registries {
		problems = append(problems, r.validate())
		if seen[r.Host] {
			problems = append(problems, bad("--registry", r.Host, "is there twice", "name a registry once, with all its mirrors"))
		}
		seen[r.Host] = true
	}
	return errors.Join(problems...)
}

func bad(field, value, why, fix string) error {
	return &fault.Problem{Class: fault.Usage, Field: field, Value: value, Why: why, Fix: fix}
}

// noProxyEntry is what both Go's programs and Windows' understand.
var noProxyEntry = regexp.MustCompile(`^(\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?(:[0-9]+)?|[0-9a-fA-F:.\[\]]+(/[0-9]{1,3})?)$`)

// proxyURL reads the proxy. Its problem does not repeat the value: that may hold
// a password.
func (s Settings) proxyURL() (*url.URL, error) {
	refuse := func(why string) error {
		return bad("--proxy", redact(s.Proxy), why, "write it as http://proxy.example.com:3128")
	}
	u, err := url.Parse(s.Proxy)
	switch {
	case err != nil:
		return nil, refuse("can't be read as a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse("is not an http or https URL")
	case u.Hostname() == "":
		return nil, refuse("names no host")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, refuse("has more than a host and a port")
	}
	return u, nil
}

// redact is a URL without user name and password, or nothing where it can't be
// read: what looks like no URL may be one with a typing error before the
// password.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		if strings.ContainsAny(raw, "@") {
			return "(hidden)"
		}
		return raw
	}
	u.User = nil
	return u.String()
}

// largestCA is more than any bundle of certificates needs, in bytes.
const largestCA = 4 << 20

// readCA reads and checks a file of certificates.
func readCA(field, file string) ([]byte, error) {
	refuse := func(why string, err error) error {
		return &fault.Problem{Class: fault.Input, Field: field, Value: file, Why: why, Err: err, Fix: "name a file of certificates in PEM form"}
	}
	fi, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, refuse("can't be read", err)
	case !fi.Mode().IsRegular():
		return nil, refuse("is no file", nil)
	case fi.Size() > largestCA:
		return nil, refuse(fmt.Sprintf("is larger than %d MiB", largestCA>>20), nil)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, refuse("can't be read", err)
	}
	if strings.Contains(string(data), "PRIVATE KEY-----") {
		return nil, refuse("holds a private key, which would end up in nodes", nil)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return nil, refuse("holds no certificate", nil)
	}
	return append([]byte(strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))), '\n'), nil
}

// DefaultClusterNetworks are the pod and service networks that kubeadm and the
// CNI's own manifest use where nothing else is said: kubeadm's service network
// 10.96.0.0/12 (its DefaultServicesSubnet), Calico's pool 192.168.0.0/16, and
// 10.244.0.0/16, which Flannel's manifest has and Antrea's guide uses.
func DefaultClusterNetworks(cni string) []string {
	pods := "10.244.0.0/16"
	if cni == "calico" {
		pods = "192.168.0.0/16"
	}
	return []string{pods, "10.96.0.0/12"}
}

// Exceptions returns what is reached without the proxy, sorted and each once:
// this machine, the cluster's names and networks, and what the user said.
func (s Settings) Exceptions() []string {
	all := slices.Concat([]string{"localhost", "127.0.0.1", "::1", ".svc", ".cluster.local"}, s.ClusterNetworks, s.NoProxy)
	slices.Sort(all)
	return slices.Compact(all)
}
