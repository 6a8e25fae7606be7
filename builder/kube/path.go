package kube

import (
	"os"
	"path/filepath"
	"strings"
)

// IsPath says whether Parse takes text for a path, when it is called with dir
// as the working folder.
func IsPath(text, dir string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return false
	}
	for _, f := range forms() {
		if f.name == folderForm {
			break // after it comes nothing that is no path
		}
		if f.matches(text) {
			return false
		}
	}
	if strings.ContainsAny(text, `/\`) || text == "." || text == ".." {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, text))
	return err == nil
}
