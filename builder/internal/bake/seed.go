package bake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/scripts"
)

// SeedLabel is the volume label by which a guest finds its seed.
const SeedLabel = "WBOXSEED"

// Script is one guest script of a layer, with its parameters.
type Script struct {
	Name   string   // such as "20-install-features"
	Params any      // marshalled into parameters.json; nil for none
	Extra  []string // other files of scripts/guest that it installs
}

// common are the files of scripts/guest that every seed carries.
var common = []string{"Wbox.psm1", "Invoke-WboxScript.ps1", readyScript + ".ps1"}

// readyScript waits for a guest that is up and quiet.
const readyScript = "00-test-ready"

// scriptFiles lists the files of scripts/guest that the scripts need, sorted.
func scriptFiles(list []Script) []string {
	seen := map[string]bool{}
	for _, f := range common {
		seen[f] = true
	}
	for _, s := range list {
		seen[s.Name+".ps1"] = true
		for _, f := range s.Extra {
			seen[f] = true
		}
	}
	out := make([]string, 0, len(seen))
	for f := range seen {
		out = append(out, f)
	}
	sort.Strings(out)
	return out
}

// ScriptDigests returns the digests of the files of scripts/guest that the
// scripts need, for a stage's fingerprint: editing one makes the layers that
// use it, and no others, anew. A script that doesn't exist has no digest; the
// seed then can't be made.
func ScriptDigests(list []Script) map[string]string {
	out := map[string]string{}
	for _, f := range scriptFiles(list) {
		if b, err := fs.ReadFile(scripts.Guest, "guest/"+f); err == nil {
			sum := sha256.Sum256(b)
			out["scripts/guest/"+f] = "sha256:" + hex.EncodeToString(sum[:])
		}
	}
	return out
}

// Seed is what goes onto a seed CD.
type Seed struct {
	Scripts []Script
	Answer  []byte            // Autounattend.xml, for an installation only
	Payload map[string][]byte // small files below payload/, made in memory
	Folders map[string]string // folders copied below payload/: name there -> folder here
}

// Write writes the seed to path. What it holds decides its bytes.
func (s Seed) Write(ctx context.Context, path string) error {
	files, err := s.files()
	if err != nil {
		return fmt.Errorf("making the seed: %w", err)
	}
	if err := iso.CreateSeed(ctx, path, SeedLabel, files); err != nil {
		return fmt.Errorf("making the seed: %w", err)
	}
	return nil
}

func (s Seed) files() ([]iso.File, error) {
	var out []iso.File
	add := func(name string, data []byte) { out = append(out, iso.FromBytes(name, data)) }
	for _, f := range scriptFiles(s.Scripts) {
		b, err := fs.ReadFile(scripts.Guest, "guest/"+f)
		if err != nil {
			return nil, err
		}
		add("wbox/"+f, b)
	}
	params := map[string]any{}
	for _, sc := range s.Scripts {
		if sc.Params != nil {
			params[sc.Name] = sc.Params
		}
	}
	b, err := json.MarshalIndent(params, "", "  ")
	if err != nil {
		return nil, err
	}
	add("wbox/parameters.json", b)
	if s.Answer != nil {
		add("Autounattend.xml", s.Answer)
	}
	for name, data := range s.Payload {
		add("payload/"+name, data)
	}
	for name, dir := range s.Folders {
		more, err := folderFiles("payload/"+name, dir)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// folderFiles lists the regular files directly in dir as seed files.
func folderFiles(prefix, dir string) ([]iso.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []iso.File
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		f, err := iso.FromDisk(prefix+"/"+e.Name(), filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, errors.New(dir + " has no files")
	}
	return out, nil
}
