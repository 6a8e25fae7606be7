package capacity

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatusEx is MEMORYSTATUSEX of sysinfoapi.h.
type memoryStatusEx struct {
	length, load                   uint32
	totalPhys, availPhys           uint64
	totalPageFile, availPageFile   uint64
	totalVirtual, availVirtual, ex uint64
}

// RAM measures the memory of this machine.
func RAM() (Memory, error) {
	var m memoryStatusEx
	m.length = uint32(unsafe.Sizeof(m))
	ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&m)))
	if ok == 0 {
		return Memory{}, fmt.Errorf("asking for the memory's status: %w", err)
	}
	return Memory{Available: int64(m.availPhys), Total: int64(m.totalPhys)}, nil
}
