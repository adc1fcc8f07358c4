//go:build unix

package filelease

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store/driver"
)

// Lock takes a lock that belongs to the open file and not, like fcntl's, to the
// process, so that two engines in one process exclude each other as well.
func Lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return driver.ErrLocked
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: locks on this file system: %w", driver.ErrUnsupported, err)
	}
	return err
}

// shared is the file, mapped into memory.
type shared struct {
	mu          sync.Mutex
	opened      bool
	file        *os.File
	memory      []byte     // of the file, or private to this process
	unconfirmed [Kept]bool // numbers of a killed process, not yet confirmed
}

// Raise sets the raised number to at least n, and returns it.
func (s *Numbers) Raise(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := s.word(0)
	for {
		there := word.Load()
		if there >= n || word.CompareAndSwap(there, n) {
			return max(there, n)
		}
	}
}

// Kept returns a kept number. It does not create the file.
func (s *Numbers) Kept(i int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		if _, err := os.Lstat(s.Path); err != nil {
			return 0
		}
	}
	return s.word(keptAt + i).Load()
}

// Keep replaces a kept number if it still equals old.
func (s *Numbers) Keep(i int, old, n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.word(keptAt+i).CompareAndSwap(old, n)
}

// Confirm records that a number left by a killed process is right. Until then
// Close does not remove the file.
func (s *Numbers) Confirm(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unconfirmed[i] = false
}

// word returns a number in the file, which other processes may change
// concurrently. The caller holds mu.
func (s *Numbers) word(i int) *atomic.Uint64 {
	if !s.opened {
		s.opened = true
		if s.open() != nil {
			s.memory = make([]byte, numberSize) // without a file each user has separate numbers
		}
	}
	return (*atomic.Uint64)(unsafe.Pointer(&s.memory[8*i]))
}

// open maps the file. Each user has a shared lock; a user that can get an
// exclusive lock is the first one and resets the numbers.
func (s *Numbers) open() error {
	for {
		f, err := os.OpenFile(s.Path, os.O_RDWR|os.O_CREATE, s.Mode)
		if err != nil {
			return err
		}
		if err = checkSize(f); err != nil {
			return errors.Join(err, f.Close())
		}
		if err = Lock(f); err == nil {
			err = s.reset(f)
		}
		if err == nil || errors.Is(err, driver.ErrLocked) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH) // waits for a user that resets or removes the file
		}
		if err == nil && !current(f, s.Path) {
			if err = f.Close(); err == nil {
				continue // the last user removed it meanwhile
			}
		}
		if err == nil {
			err = grow(f)
		}
		var memory []byte
		if err == nil {
			memory, err = unix.Mmap(int(f.Fd()), 0, numberSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		s.file, s.memory = f, memory
		return nil
	}
}

// checkSize refuses a file of unexpected size, because it is a user's. Earlier
// versions made shorter files.
func checkSize(f *os.File) error {
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || st.Size() > numberSize || st.Size()%8 != 0) {
		err = fmt.Errorf("%q is not a file of Varve's", f.Name())
	}
	return err
}

// reset resets the raised number. It resets the kept numbers only if the
// system was restarted since, because writes that were not durable may then be
// lost.
func (s *Numbers) reset(f *os.File) error {
	page, boot := make([]byte, numberSize), bootID()
	if _, err := f.ReadAt(page, 0); err != nil || len(boot) == 0 || !bytes.Equal(page[bootAt:], boot) {
		clear(page)
		copy(page[bootAt:], boot)
	}
	clear(page[:8])
	for i := range s.unconfirmed {
		s.unconfirmed[i] = !bytes.Equal(page[8*(keptAt+i):][:8], make([]byte, 8))
	}
	_, err := f.WriteAt(page, 0)
	return err
}

// grow extends a file of an earlier version, whose processes may be using it.
func grow(f *os.File) error {
	st, err := f.Stat()
	if err == nil && st.Size() < numberSize {
		err = f.Truncate(numberSize)
	}
	return err
}

// bootID identifies a start (boot) of the system; empty if the system has no
// such id.
func bootID() []byte {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(text) > bootSize {
		return nil
	}
	return append(make([]byte, 0, bootSize), text...)[:bootSize]
}

// Close ends the use of the numbers. The last user removes the file, unless a
// killed process left numbers that were not confirmed.
func (s *Numbers) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	memory := s.memory
	s.opened = true
	if s.memory = make([]byte, numberSize); memory != nil {
		copy(s.memory, memory)
	}
	if s.file == nil {
		return nil
	}
	err := unix.Munmap(memory)
	if s.unconfirmed == [Kept]bool{} && Lock(s.file) == nil && current(s.file, s.Path) { // there is no other user
		err = errors.Join(err, os.Remove(s.Path))
	}
	err = errors.Join(err, s.file.Close())
	s.file = nil
	return err
}
