package probe

import (
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// window is how much of a file is mapped at a time.
const window = 256 << 20

// mincore counts the resident pages of a file. Mapping a file does not read
// it.
func mincore(f *os.File, size int64) (Pages, error) {
	page := int64(os.Getpagesize())
	vector := make([]byte, min(size, window)/page+1)
	var sum Pages
	for at := int64(0); at < size; at += window {
		length := min(size-at, window)
		pages, err := mincoreAt(f, at, length, vector[:(length+page-1)/page])
		if err != nil {
			return sum, err
		}
		sum = sum.plus(pages)
	}
	return sum, nil
}

func mincoreAt(f *os.File, at, length int64, vector []byte) (p Pages, err error) {
	m, err := unix.Mmap(int(f.Fd()), at, int(length), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return p, fmt.Errorf("mmap: %w", err)
	}
	defer func() {
		if unmapped := unix.Munmap(m); err == nil {
			err = unmapped
		}
	}()
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(length), uintptr(unsafe.Pointer(unsafe.SliceData(vector))))
	if errno != 0 {
		return p, fmt.Errorf("mincore: %w", errno)
	}
	for _, b := range vector {
		// Only the lowest bit is defined.
		p.Resident += int64(bits.OnesCount8(b & 1))
	}
	p.Total = int64(len(vector))
	return p, nil
}

func dontNeed(f *os.File) error {
	// A length of 0 is the whole file.
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("fadvise: %w", err)
	}
	return nil
}
