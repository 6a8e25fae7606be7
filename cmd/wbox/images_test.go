package main

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wbox-dev/wbox/builder/kube/kubetest"
	"github.com/wbox-dev/wbox/images/imagestest"
)

// registries are those that a script has started, by the variable of their host.
type registries map[string]*imagestest.Registry

const registriesKey = "registries"

// registry VAR [KIND]: starts a registry and puts its host into VAR. KIND is
// tls (a certificate that nobody trusts), login (user and password), busy (429
// for the first three requests) or slammed (429 for ever).
func startRegistry(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: registry VAR [KIND]")
	}
	kind := ""
	if len(args) > 1 {
		kind = args[1]
	}
	r := imagestest.New()
	if kind == "tls" {
		r = imagestest.NewTLS()
	}
	ts.Defer(r.Close)
	var n atomic.Int32
	busy := func(w http.ResponseWriter) bool {
		w.Header().Set("Retry-After", "1")
		imagestest.Refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS")
		return true
	}
	switch kind {
	case "login":
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret-word"))
		r.Fail(func(w http.ResponseWriter, req *http.Request) bool {
			if req.Header.Get("Authorization") == want {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			imagestest.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
			return true
		})
		ts.Setenv("LOGIN", `{"auths":{"`+r.Host+`":{"auth":"`+strings.TrimPrefix(want, "Basic ")+`"}}}`)
	case "busy":
		r.Fail(func(w http.ResponseWriter, _ *http.Request) bool { return n.Add(1) <= 3 && busy(w) })
	case "slammed":
		r.Fail(func(w http.ResponseWriter, _ *http.Request) bool { return busy(w) })
	}
	all, _ := ts.Value(registriesKey).(registries)
	all[args[0]] = r
	ts.Setenv(args[0], r.Host)
}

// publish VAR VERSION-TAG: puts the images of a cluster into a registry, as the
// registry of releases has them; publish VAR VERSION-TAG control-plane: only
// those that carry the version.
func publishImages(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: publish VAR TAG [control-plane]")
	}
	all, _ := ts.Value(registriesKey).(registries)
	r := all[args[0]]
	names := []string{"kube-apiserver:" + args[1], "kube-controller-manager:" + args[1], "kube-scheduler:" + args[1], "kube-proxy:" + args[1]}
	if len(args) == 2 {
		names = append(names, "coredns/coredns:"+kubetest.CoreDNS, "pause:"+kubetest.Pause, "etcd:"+kubetest.Etcd)
	}
	for i, name := range names {
		s := imagestest.Spec{Layers: 2, Size: 2000, Seed: uint64(i)}
		for _, arch := range []string{"amd64", "arm64"} {
			s.Platforms = append(s.Platforms, imagestest.Linux(arch))
		}
		if strings.HasPrefix(name, "pause") {
			s.Platforms = append(s.Platforms, imagestest.Windows("10.0.20348.2700"), imagestest.Windows("10.0.26100.1000"))
		}
		m, err := r.Push(context.Background(), name, s)
		ts.Check(err)
		component, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
		ts.Setenv("DIGEST_"+strings.ToUpper(strings.ReplaceAll(component, "-", "_")), m.Digest.String())
	}
}

// requests VAR MOST: how many requests a registry got since it was asked last.
func requests(ts *testscript.TestScript, _ bool, args []string) {
	all, _ := ts.Value(registriesKey).(registries)
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	r := all[args[0]]
	if got := r.Requests(); len(got) > most {
		ts.Fatalf("%d requests, want at most %d:\n%s", len(got), most, strings.Join(got, "\n"))
	}
	r.Reset()
}

// cibucket: from here on, CI builds come from a loopback bucket with one build
// for all systems and the archives of its images.
func cibucket(ts *testscript.TestScript, _ bool, _ []string) {
	const version = "v1.38.0-alpha.1.5+0123456789abcd"
	b, err := kubetest.NewBucket(ts.MkAbs(".ci-bucket"))
	ts.Check(err)
	server := httptest.NewServer(b)
	ts.Defer(server.Close)
	ts.Setenv("WBOX_KUBE_BASE_URL", server.URL)
	ts.Check(b.Publish(context.Background(), "ci", version, true))
	ts.Check(b.Add("ci/latest.txt", []byte(version)))
	tag := strings.ReplaceAll(version, "+", "_")
	for i, c := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		data, err := imagestest.Archive("registry.k8s.io/"+c+"-amd64:"+tag, imagestest.Spec{Layers: 2, Size: 3000, Seed: uint64(i)})
		ts.Check(err)
		ts.Check(b.Add("ci/"+version+"/bin/linux/amd64/"+c+".tar", data))
	}
	ts.Setenv("TAG", tag)
}
