package cli

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/network"
	"github.com/wbox-dev/wbox/builder/spec"
	"github.com/wbox-dev/wbox/images"
)

// networkFlags are the flags of all commands that download what a selection
// needs. They choose nothing, so that they are not among selectionFlags, which
// are repeated in messages: a proxy may have a password.
func networkFlags(f *pflag.FlagSet, sel *selection) {
	s := &sel.flags
	f.StringVar(&s.Proxy, "proxy", "", "the HTTP proxy of downloads and of nodes, such as http://proxy.example.com:3128 (default: HTTPS_PROXY for downloads, none for nodes)")
	f.StringSliceVar(&s.NoProxy, "no-proxy", nil, "hosts, domains and networks that are reached without the proxy")
	f.StringSliceVar(&s.ClusterNetworks, "cluster-network", nil, "the cluster's pod and service networks, which never go through the proxy (default 10.96.0.0/12 and what the CNI's manifest has)")
	f.StringArrayVar(&s.ExtraCAs, "extra-ca", nil, "a file of certificates (PEM) that downloads and nodes trust too; may be repeated")
	f.Var((*registriesValue)(&s.Registries), "registry", "where nodes pull a registry's images from instead: docker.io=https://mirror.example.com, with ,ca=FILE ,plain-http or ,skip-verify where needed; may be repeated")
}

// registriesValue is the value of --registry.
type registriesValue []network.Registry

// Set adds a registry.
func (v *registriesValue) Set(text string) error {
	r, err := network.ParseRegistry(text)
	if err != nil {
		return err
	}
	*v = append(*v, r)
	return nil
}

// Type is what help calls it.
func (*registriesValue) Type() string { return "HOST=URL" }

// String lists the registries.
func (v *registriesValue) String() string {
	var all []string
	for _, r := range *v {
		all = append(all, r.String())
	}
	return strings.Join(all, " ")
}

// useNetwork lets downloads go as the selection says. What is wrong with that
// is told by Resolve, with everything else.
func (a *app) useNetwork(ctx context.Context, s *spec.Spec, opts *builder.ResolveOptions) error {
	n := s.Network()
	if err := a.useRegistries(s, n, opts); err != nil {
		return err
	}
	if (n.Proxy == "" && len(n.ExtraCAs) == 0) || n.Validate() != nil {
		return nil
	}
	transport, err := n.Transport()
	if err != nil {
		return err
	}
	store, err := a.storeDir()
	if err != nil {
		return err
	}
	env, err := n.ChildEnv(ctx, filepath.Join(store, "kube"))
	if err != nil {
		return err
	}
	opts.Kube.Transport, opts.Media.Transport = transport, transport
	opts.Kube.Env = append(opts.Kube.Env, env...)
	return nil
}

// useRegistries gives the images of --preload a client that keeps what it gets.
func (a *app) useRegistries(s *spec.Spec, n network.Settings, opts *builder.ResolveOptions) error {
	if len(s.Preload) == 0 || n.Validate() != nil {
		return nil
	}
	proxy, roots, err := n.Route()
	if err != nil {
		return err
	}
	cache, err := a.openCache()
	if err != nil {
		return err
	}
	var plain []string
	for _, r := range s.Registries {
		for _, m := range r.Mirrors {
			if u, err := url.Parse(m); err == nil && u.Scheme == "http" {
				plain = append(plain, u.Host)
			}
		}
		if r.PlainHTTP {
			plain = append(plain, r.Host)
		}
	}
	var transport http.RoundTripper = images.NewTransport(proxy, roots, images.DefaultJobs)
	if opts.Offline {
		transport = network.Offline()
	}
	opts.Images = images.NewClient(images.ClientOptions{Keychain: images.DefaultKeychain(os.Getenv(images.AuthVariable)), Transport: transport, PlainHTTP: plain,
		Cache: cache.Images(), Sink: a.display, Agent: "wbox/" + version})
	return nil
}
