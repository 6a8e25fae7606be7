package media

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// The modules that each boot loads, in order; what they depend on goes before
// them. crc32c is what ext4 asks the crypto layer for by name.
func setupModules() []string {
	return []string{"ahci", "sd_mod", "sr_mod", "crc32c_generic", "ext4", "nls_cp437", "nls_ascii", "vfat", "isofs", "udf"}
}

func diskModules() []string {
	return append(setupModules(), "e1000e", "evdev", "button")
}

// moduleIndex maps a module's name (with underscores) to its file.
func moduleIndex(root string) (map[string]string, error) {
	index := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, ok := strings.CutSuffix(entry.Name(), ".ko"); ok {
			index[strings.ReplaceAll(name, "-", "_")] = path
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the kernel's modules: %w", err)
	}
	return index, nil
}

// closure returns the files of the named modules and of all that they depend
// on, each after its dependencies.
func closure(index map[string]string, names []string, depends func(path string) ([]string, error)) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		if seen[name] {
			return nil
		}
		seen[name] = true
		path, ok := index[name]
		if !ok {
			return fmt.Errorf("the kernel package has no module %s", name)
		}
		deps, err := depends(path)
		if err != nil {
			return err
		}
		for _, dep := range deps {
			if err := add(dep); err != nil {
				return fmt.Errorf("for %s: %w", name, err)
			}
		}
		files = append(files, path)
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// moduleDepends reads the "depends=" entry of a module file's .modinfo section;
// the package carries no modules.dep, depmod makes that where it is installed.
func moduleDepends(path string) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a module: %w", err)
	}
	defer file.Close()
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s has no .modinfo", filepath.Base(path))
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("reading a module: %w", err)
	}
	for _, entry := range bytes.Split(data, []byte{0}) {
		if deps, ok := bytes.CutPrefix(entry, []byte("depends=")); ok && len(deps) > 0 {
			return strings.Split(string(deps), ","), nil
		}
	}
	return nil, nil
}
