//go:build unix

package filelease

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

// Number is a number that all share who use the file of a path at once, in this process
// and in others. It is zero at first, and again when nobody uses it any more: then the file
// is removed, or set back by who uses it next. Where there can be no such file, each has a
// number of its own.
type Number struct {
	Path string
	Mode os.FileMode // of the file

	mu     sync.Mutex
	opened bool
	file   *os.File
	memory []byte // of the file; nil is none
	value  uint64
}

const numberSize = 8

// Raise makes the number at least n, and returns it.
func (s *Number) Raise(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		s.opened = true
		_ = s.open() // each has one of its own
	}
	s.value = max(s.value, n)
	if s.memory == nil {
		return s.value
	}
	shared := (*atomic.Uint64)(unsafe.Pointer(&s.memory[0]))
	for {
		there := shared.Load()
		if there >= s.value || shared.CompareAndSwap(there, s.value) {
			s.value = max(s.value, there)
			return s.value
		}
	}
}

// open maps the file. Who uses it has a shared lock; who has the file alone sets it back.
func (s *Number) open() error {
	for {
		f, err := os.OpenFile(s.Path, os.O_RDWR|os.O_CREATE, s.Mode)
		if err != nil {
			return err
		}
		if err = Lock(f); err == nil {
			_, err = f.WriteAt(make([]byte, numberSize), 0)
		}
		if err == nil || errors.Is(err, driver.ErrLocked) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH) // waits for who sets it back or removes it
		}
		if err == nil && !current(f, s.Path) {
			if err = f.Close(); err == nil {
				continue // the last user removed it meanwhile
			}
		}
		if err == nil {
			s.memory, err = unix.Mmap(int(f.Fd()), 0, numberSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		s.file = f
		return nil
	}
}

// Close ends the use. The number stays what it was.
func (s *Number) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
	if s.file == nil {
		return nil
	}
	err := unix.Munmap(s.memory)
	if Lock(s.file) == nil && current(s.file, s.Path) { // nobody else uses it
		err = errors.Join(err, os.Remove(s.Path))
	}
	err = errors.Join(err, s.file.Close())
	s.file, s.memory = nil, nil
	return err
}
