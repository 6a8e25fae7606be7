package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/gosource"
	"github.com/wbox-dev/wbox/builder/report"
)

// version finds out the version of a folder's kubelet.exe: as the user says,
// as the file "version" says, else as the program itself says.
func (d *dirSource) version(ctx context.Context, kubelet, digest string, sink report.Sink) (string, error) {
	if d.opts.Version != "" {
		v, err := normalizeVersion(d.opts.Version, true)
		if err != nil {
			return "", &fault.Problem{Class: fault.Input, Field: "--k8s-version", Value: d.opts.Version, Why: "is no version", Err: err, Fix: "give it as kubelet.exe --version prints it"}
		}
		return v, d.doubt(kubelet, v, sink)
	}
	file := filepath.Join(d.path, "version")
	data, err := gosource.ReadSome(file, 256)
	switch {
	case err == nil:
		v, err := normalizeVersion(string(data), true)
		if err != nil {
			return "", &fault.Problem{Class: fault.Input, Field: field, Value: file, Why: "holds no version", Err: err, Fix: "write one line such as v1.37.2 into it, or say --k8s-version"}
		}
		return v, d.doubt(kubelet, v, sink)
	case !errors.Is(err, os.ErrNotExist):
		return "", &fault.Problem{Class: fault.Input, Field: field, Value: file, Why: "can't be read", Err: err, Fix: "write one line such as v1.37.2 into it, or say --k8s-version"}
	}
	out, err := d.opts.ask(ctx, kubelet, strings.TrimPrefix(digest, "sha256:"), "--version")
	if ctx.Err() != nil {
		return "", fmt.Errorf("asking kubelet.exe for its version: %w", ctx.Err())
	}
	var v string
	if err == nil {
		v, err = printedVersion(out)
	}
	if err != nil {
		return "", &fault.Problem{Class: fault.Input, Field: field, Value: d.path, Why: "does not say which version it is", Err: err,
			Fix: "say it with --k8s-version v1.37.2, or write it into a file " + file}
	}
	return v, nil
}

// printedVersion reads what `kubelet.exe --version` prints, such as
// "Kubernetes v1.36.3".
func printedVersion(out string) (string, error) {
	m := regexp.MustCompile(`(?m)^Kubernetes (v\S+)\s*$`).FindStringSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("kubelet.exe --version prints %q", gosource.FirstLine(out))
	}
	v, err := normalizeVersion(m[1], true)
	if err != nil {
		return "", fmt.Errorf("kubelet.exe --version prints no version: %w", err)
	}
	return v, nil
}

// doubt warns where a kubelet.exe does not contain the version that it is said
// to be: it reports another one to its cluster, then.
func (d *dirSource) doubt(kubelet, version string, sink report.Sink) error {
	_, err := Verify(kubelet, Expect{Name: Kubelet, Standalone: version})
	var missing *gosource.StampError
	if errors.As(err, &missing) {
		sink.Emit(report.Event{Kind: report.Warning,
			Message: strings.TrimSpace(kubelet + " does not contain " + version + ": it will report another version to its cluster")})
		return nil
	}
	return err
}
