package network

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// certsFolder is where containerd's configuration of 30-install-runtime looks.
const certsFolder = "C:/etc/containerd/certs.d"

// nodeFile is the form of the file that Set-WboxNetwork.ps1 reads. All of it replaces what an earlier file
// set up: what is not in it any more is taken away.
type nodeFile struct {
	Schema       int               `json:"schema"`
	Certs        []nodeText        `json:"certs"`        // files below containerd's certs.d, with forward slashes
	Authorities  []string          `json:"authorities"`  // certificates (PEM), one each
	Environment  map[string]string `json:"environment"`  // of containerd's service; not the machine's, or kubelet would look for its cluster through the proxy
	WinHTTPProxy string            `json:"winHTTPProxy"` // host:port, empty for none
	WinHTTPSkip  []string          `json:"winHTTPSkip"`  // what goes around it, as Windows writes it
}

type nodeText struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// NodeFile renders the file that Set-WboxNetwork.ps1 reads on a node: JSON,
// ending in a line feed. It holds the proxy's password, if there is one.
func (s Settings) NodeFile() ([]byte, error) {
	n := nodeFile{Schema: 1, Certs: []nodeText{}, Authorities: []string{}, Environment: map[string]string{}, WinHTTPSkip: []string{}}
	for _, r := range s.Registries {
		ca := r.folder() + "/ca.crt"
		if r.CA != "" {
			data, err := readCA("--registry", r.CA)
			if err != nil {
				return nil, err
			}
			n.Certs = append(n.Certs, nodeText{ca, string(data)})
		}
		n.Certs = append(n.Certs, nodeText{r.folder() + "/hosts.toml", r.hostsTOML(certsFolder + "/" + ca)})
	}
	for _, file := range s.ExtraCAs {
		data, err := readCA("--extra-ca", file)
		if err != nil {
			return nil, err
		}
		n.Authorities = append(n.Authorities, certificates(data)...)
	}
	if s.Proxy != "" {
		u, err := s.proxyURL()
		if err != nil {
			return nil, err
		}
		for k, v := range s.environment() {
			n.Environment[k] = v
		}
		n.WinHTTPProxy, n.WinHTTPSkip = hostPort(u), winHTTPSkip(s.Exceptions())
	}
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing down the network: %w", err)
	}
	return append(data, '\n'), nil
}

// environment are the variables of a proxy, in the case that Windows' programs
// read: the environment of Windows knows no difference.
func (s Settings) environment() map[string]string {
	return map[string]string{"HTTP_PROXY": s.Proxy, "HTTPS_PROXY": s.Proxy, "NO_PROXY": strings.Join(s.Exceptions(), ",")}
}

// hostPort is a proxy's address with its port, which WinHTTP needs.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return u.Host + map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
}

// winHTTPSkip writes exceptions as WinHTTP takes them: names with stars, and
// "<local>" for names without a dot. It knows no networks, only leading numbers, and
// nothing of IPv6.
func winHTTPSkip(exceptions []string) []string {
	out := []string{"<local>"}
	for _, e := range exceptions {
		switch {
		case strings.HasPrefix(e, "."):
			out = append(out, "*"+e)
		case strings.Contains(e, "/"):
			out = append(out, octets(e)...)
		case strings.Contains(e, "::") || e == "*":
		default:
			out = append(out, e)
		}
	}
	return out
}
