//go:build linux || darwin

package capacity

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func disk(dir string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return Space{}, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	block := int64(fs.Bsize)
	return Space{Free: int64(fs.Bavail) * block, Total: int64(fs.Blocks) * block, Volume: fmt.Sprint(st.Dev)}, nil
}
