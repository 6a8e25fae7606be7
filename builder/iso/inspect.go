package iso

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Media is what an installation medium says of itself.
type Media struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`  // bytes
	Label    string    `json:"label"` // as Windows shows it
	Editions []Edition `json:"editions"`
	StandIn  *StandIn  `json:"standIn,omitempty"` // nil for Windows
}

// StandIn is the content of wbox-stand-in.json, which marks the medium that
// plays Windows in tests.
type StandIn struct {
	StandIn    bool   `json:"standIn"` // always true
	Version    string `json:"version"`
	PowerShell string `json:"powershell"` // its version, empty where it has none
	Containerd string `json:"containerd"` // likewise: what imports images there
}

// StandInFile is the name of the file, in the root folder, that marks a
// stand-in.
const StandInFile = "wbox-stand-in.json"

// Evaluation says whether all editions are evaluations: media are one or the
// other.
func (m Media) Evaluation() bool {
	for _, e := range m.Editions {
		if !e.Evaluation() {
			return false
		}
	}
	return len(m.Editions) > 0
}

// Inspect reads which editions of Windows the ISO at path holds. Everything
// that may be wrong with it is a *fault.Problem of class Input about --iso,
// which says what the file is and what to do. It reads some hundred kilobytes.
func Inspect(ctx context.Context, path string) (Media, error) {
	if err := ctx.Err(); err != nil {
		return Media{}, err
	}
	size, err := checkFile(path)
	if err != nil {
		return Media{}, err
	}
	img, err := Open(path)
	if err != nil {
		return Media{}, openProblem(path, size, err)
	}
	defer img.Close()
	m := Media{Path: path, Size: size, Label: img.Label()}
	if m.StandIn, err = readStandIn(img.FS()); err != nil {
		return Media{}, contentProblem(path, StandInFile+" can't be read", err)
	}
	if err := ctx.Err(); err != nil {
		return Media{}, err
	}
	m.Editions, err = readInstall(img.FS(), path)
	if err != nil {
		return Media{}, err
	}
	return m, nil
}

// checkFile refuses what can't be an ISO without being looked into.
func checkFile(path string) (size int64, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, problem(path, "there is no such file", "check the path", nil)
	case err != nil:
		return 0, problem(path, "it can't be opened", "check the path and who may read it", err)
	case info.IsDir():
		return 0, problem(path, "it is a folder", "give the .iso file itself", nil)
	case !info.Mode().IsRegular():
		return 0, problem(path, "it is a device or a pipe", "copy the medium to a file and give that", nil)
	case info.Size() == 0:
		return 0, problem(path, "it is empty", "download it again", nil)
	}
	return info.Size(), nil
}

// readInstall finds and reads the WIM that Setup installs from.
func readInstall(files fs.FS, path string) ([]Edition, error) {
	for _, name := range []string{"sources/install.wim", "sources/install.esd"} {
		f, err := files.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, contentProblem(path, name+" can't be read", err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, contentProblem(path, name+" can't be read", err)
		}
		r, ok := f.(io.ReaderAt)
		if !ok {
			return nil, problem(path, name+" is a folder", "give an ISO of Windows Server", nil)
		}
		editions, err := ReadEditions(r, info.Size())
		switch {
		case errors.Is(err, ErrSplitWIM):
			return nil, splitProblem(path, err)
		case err != nil:
			return nil, contentProblem(path, name+" is damaged", err)
		}
		return editions, nil
	}
	if _, err := fs.Stat(files, "sources/install.swm"); err == nil {
		return nil, splitProblem(path, nil)
	}
	return nil, problem(path, "it has neither sources/install.wim nor sources/install.esd, so it doesn't install Windows",
		"give an ISO of Windows Server, not one of drivers, language packs or another system", nil)
}

func splitProblem(path string, err error) error {
	return problem(path, "its sources/install.wim is split into several parts",
		"give the ISO as Microsoft publishes it, with one install.wim", err)
}

func contentProblem(path, why string, err error) error {
	return problem(path, why, "download it again and compare its SHA-256", err)
}

// readStandIn gives nil where the medium is no stand-in.
func readStandIn(files fs.FS) (*StandIn, error) {
	f, err := files.Open(StandInFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStandIn+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxStandIn {
		return nil, fmt.Errorf("it has more than %d bytes", maxStandIn)
	}
	var s StandIn
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	if !s.StandIn {
		return nil, nil
	}
	return &s, nil
}
