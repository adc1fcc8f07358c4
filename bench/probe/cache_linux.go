package probe

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore counts the resident pages of a file. Mapping a file does not read it.
func mincore(f *os.File, size int64) (p Pages, err error) {
	if size == 0 {
		return p, nil
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return p, fmt.Errorf("mmap: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(m)) }()
	page := int64(os.Getpagesize())
	vector := make([]byte, (size+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(size), uintptr(unsafe.Pointer(unsafe.SliceData(vector))))
	if errno != 0 {
		return p, fmt.Errorf("mincore: %w", errno)
	}
	for _, b := range vector {
		p.Resident += int64(b & 1) // the only bit that is defined
	}
	p.Total = int64(len(vector))
	return p, nil
}

func dontNeed(f *os.File) error {
	// A length of 0 means the whole file.
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("fadvise: %w", err)
	}
	return nil
}
