package imagestest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Docker is a registry of Docker's own program, docker-registry, on loopback.
type Docker struct {
	Host string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

// HasDocker says whether the program is there.
func HasDocker() bool {
	_, err := exec.LookPath("docker-registry")
	return err == nil
}

// StartDocker starts one that keeps everything below dir. htpasswd, which may
// be empty, is the content of a file with its users: it wants a login then.
func StartDocker(ctx context.Context, dir, htpasswd string) (*Docker, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &Docker{Host: l.Addr().String()}
	l.Close()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage:\n  filesystem: {rootdirectory: %q}\n  delete: {enabled: true}\nvalidation: {manifests: {urls: {allow: ['.*']}}}\nhttp: {addr: %s, secret: s}\n",
		filepath.Join(dir, "data"), d.Host)
	if htpasswd != "" {
		if err := os.WriteFile(filepath.Join(dir, "htpasswd"), []byte(htpasswd), 0o600); err != nil {
			return nil, err
		}
		config += fmt.Sprintf("auth:\n  htpasswd: {realm: test, path: %q}\n", filepath.Join(dir, "htpasswd"))
	}
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	d.cmd = exec.CommandContext(ctx, "docker-registry", "serve", file)
	d.cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", d.Host)
		if err == nil {
			conn.Close()
			return d, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			d.Stop()
			return nil, fmt.Errorf("waiting for docker-registry: %w\n%s", err, d.log.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Stop ends it.
func (d *Docker) Stop() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// InFront starts a Registry that passes everything on to another one, so that
// it counts and fails on demand.
func InFront(host string) *Registry {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	p.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	return Before(p)
}
