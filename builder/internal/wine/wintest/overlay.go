package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wbox-dev/wbox/builder/internal/exec"
)

// Wine 8.0 lacks the call with which os.RemoveAll deletes on Windows 10 and
// newer, and answers with a status that the standard library doesn't take for
// "an older Windows". The library has a switch for its own tests that makes it
// delete as there; it is switched on in a copy of the file.
const (
	deletes   = "internal/syscall/windows/at_windows.go"
	switchOff = "\nvar TestDeleteatFallback bool\n"
	switchOn  = "\nvar TestDeleteatFallback = true\n"
)

// writeOverlay writes the file for the go command's -overlay into dir.
func writeOverlay(ctx context.Context, dir string) (string, error) {
	root, err := exec.Run(ctx, exec.Command{Program: "go", Args: []string{"env", "GOROOT"}})
	if err != nil {
		return "", fmt.Errorf("asking for Go's folder: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", filepath.FromSlash(deletes))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("reading the standard library: %w", err)
	}
	patched := strings.Replace(string(source), switchOff, switchOn, 1)
	if patched == string(source) {
		return "", fmt.Errorf("%s has no %q: this Go deletes in another way", original, strings.TrimSpace(switchOff))
	}
	file, overlay := filepath.Join(dir, filepath.Base(deletes)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, []byte(patched), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o644)
}
