package capacity

import (
	"os"

	"golang.org/x/sys/windows"
)

func disk(dir string) (Space, error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, &total, nil); err != nil {
		return Space{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	root := make([]uint16, windows.MAX_LONG_PATH)
	if err := windows.GetVolumePathName(p, &root[0], uint32(len(root))); err != nil {
		return Space{}, &os.PathError{Op: "GetVolumePathName", Path: dir, Err: err}
	}
	return Space{Free: int64(free), Total: int64(total), Volume: windows.UTF16ToString(root)}, nil
}
