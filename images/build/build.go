package build

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/controlplane"
	"github.com/wbox-dev/wbox/images/hostprocess"
	"github.com/wbox-dev/wbox/images/layer"
)

// Linux asks for a control plane's images.
type Linux struct {
	Folders    map[string]string // by processor ("amd64", "arm64"): where its programs and kube-log-runner lie
	Repository string            // Optional: what the names begin with; default images.DefaultRelease
	ProxyBase  images.Source     // Optional: what kube-proxy is put on; without it, there is no image of kube-proxy
}

// Plugin asks for the images of a network plugin for Windows nodes.
type Plugin struct {
	Name     string // "antrea" or "calico"
	Version  string
	Revision string            // Optional: its commit
	Files    hostprocess.Files // see hostprocess.Antrea and Calico
}

// Request says what is made.
type Request struct {
	Version      string // of Kubernetes
	Revision     string // Optional: its commit
	Linux        *Linux
	KubeProxy    string   // Optional: where kube-proxy.exe lies
	FeatureGates []string // Optional: of that kube-proxy, "NAME=true"
	Plugin       *Plugin
	Base         images.Source // Optional: what Windows images are put on; default hostprocess.Base
	Created      time.Time     // what images say that they were made; the same bytes need the same
	Dir          string        // a folder for layers, which must live as long as the images
}

// Image is one image that was made.
type Image struct {
	Name      string        `json:"name"`
	OS        string        `json:"os"`
	Platforms []string      `json:"platforms"`
	Digest    string        `json:"digest"`          // of the index, where there are several platforms
	Patch     string        `json:"patch,omitempty"` // the name of a file for Patches
	Source    images.Source `json:"-"`
}

// Result is what was made.
type Result struct {
	Images  []Image
	Patches map[string][]byte // by file name: what makes a manifest use the images
	Skipped []string          // what was not made, and why, for people
}

// Build makes the images. What is wrong with the programs is a *fault.Problem
// of class fault.Input.
func Build(ctx context.Context, r Request) (*Result, error) {
	out := &Result{Patches: map[string][]byte{}}
	b := &builder{Request: r, opts: layer.Options{Created: r.Created, Dir: r.Dir}, out: out}
	if r.Linux != nil {
		if err := b.linux(ctx); err != nil {
			return nil, err
		}
	}
	if r.KubeProxy == "" && r.Plugin == nil {
		return out, nil
	}
	if err := b.windows(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

type builder struct {
	Request
	opts layer.Options
	out  *Result
}

// linux makes an image, or an index of several platforms, for each program.
func (b *builder) linux(ctx context.Context) error {
	repository := b.Linux.Repository
	if repository == "" {
		repository = images.DefaultRelease
	}
	arches := make([]string, 0, len(b.Linux.Folders))
	for arch := range b.Linux.Folders {
		arches = append(arches, arch)
	}
	slices.Sort(arches)
	for _, program := range controlplane.Programs() {
		if needs := controlplane.Needs(program); needs != nil && b.Linux.ProxyBase == nil {
			b.out.Skipped = append(b.out.Skipped, fmt.Sprintf("no image of %s for Linux: it calls %v, which an empty base lacks", program, needs))
			continue
		}
		var all []v1.Image
		for _, arch := range arches {
			img, err := b.program(ctx, program, arch)
			if err != nil {
				return err
			}
			all = append(all, img)
		}
		name := repository + "/" + program + ":" + hostprocess.Tag(b.Version)
		if err := b.add(Image{Name: name, OS: "linux"}, all...); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) program(ctx context.Context, program, arch string) (v1.Image, error) {
	dir := b.Linux.Folders[arch]
	p := controlplane.Program{Name: program, Path: filepath.Join(dir, program), Runner: filepath.Join(dir, "kube-log-runner"), Arch: arch, Version: b.Version, Revision: b.Revision}
	if controlplane.Needs(program) != nil {
		base, err := images.Load(ctx, b.Linux.ProxyBase, images.Platform{OS: "linux", Architecture: arch})
		if err != nil {
			return nil, err
		}
		p.Base = base
	}
	img, err := controlplane.Build(ctx, p, b.opts)
	if err != nil {
		return nil, fmt.Errorf("making the image of %s for linux/%s: %w", program, arch, err)
	}
	return img, nil
}

// windows makes the images of Windows nodes.
func (b *builder) windows(ctx context.Context) error {
	base, err := b.base(ctx)
	if err != nil {
		return err
	}
	if b.KubeProxy != "" {
		im, err := hostprocess.KubeProxy{Version: b.Version, Revision: b.Revision, Program: b.KubeProxy, FeatureGates: b.FeatureGates}.Image()
		if err != nil {
			return err
		}
		if err := b.hostProcess(ctx, base, im, "kube-proxy-windows.yaml", hostprocess.KubeProxyWorkload()); err != nil {
			return err
		}
	}
	if b.Plugin == nil {
		return nil
	}
	switch p := b.Plugin; p.Name {
	case "antrea":
		im, err := hostprocess.Antrea("--cni", p.Files, p.Version, p.Revision)
		if err != nil {
			return err
		}
		return b.hostProcess(ctx, base, im, "antrea-windows.yaml", hostprocess.AntreaWorkload())
	case "calico":
		all, err := hostprocess.Calico("--cni", p.Files, p.Version, p.Revision)
		if err != nil {
			return err
		}
		for _, im := range all {
			if err := b.hostProcess(ctx, base, im, "", hostprocess.Workload{}); err != nil {
				return err
			}
		}
		return nil
	}
	return &fault.Problem{Class: fault.Usage, Field: "--cni", Value: b.Plugin.Name, Why: "has no images that are made here", Fix: "use antrea or calico"}
}

func (b *builder) base(ctx context.Context) (v1.Image, error) {
	if b.Base != nil {
		return images.Load(ctx, b.Base, images.Platform{OS: "windows", Architecture: "amd64"})
	}
	return hostprocess.Base(ctx, b.opts)
}

func (b *builder) hostProcess(ctx context.Context, base v1.Image, im hostprocess.Image, patch string, w hostprocess.Workload) error {
	img, err := hostprocess.Build(ctx, base, im, b.opts)
	if err != nil {
		return fmt.Errorf("making %s: %w", im.Name, err)
	}
	if patch != "" {
		b.out.Patches[patch] = w.Patch(im.Name)
	}
	return b.add(Image{Name: im.Name, OS: "windows", Patch: patch}, img)
}

// add records an image, or an index of several.
func (b *builder) add(i Image, all ...v1.Image) error {
	for _, img := range all {
		config, err := img.ConfigFile()
		if err != nil {
			return fmt.Errorf("reading the configuration of %s: %w", i.Name, err)
		}
		i.Platforms = append(i.Platforms, config.OS+"/"+config.Architecture)
	}
	var root interface{ Digest() (v1.Hash, error) }
	if len(all) == 1 {
		root, i.Source = all[0], images.Built(all[0], i.Name)
	} else {
		index, err := controlplane.Index(all...)
		if err != nil {
			return fmt.Errorf("making the index of %s: %w", i.Name, err)
		}
		root, i.Source = index, images.BuiltIndex(index, i.Name)
	}
	digest, err := root.Digest()
	if err != nil {
		return fmt.Errorf("making %s: %w", i.Name, err)
	}
	i.Digest = digest.String()
	b.out.Images = append(b.out.Images, i)
	return nil
}
