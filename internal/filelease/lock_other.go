//go:build !unix

package filelease

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/store/driver"
)

// Lock fails, because without locks two processes would damage shared files.
func Lock(*os.File) error {
	return fmt.Errorf("%w: locks that end with a process, on this system", driver.ErrUnsupported)
}

// shared is limited to this process on this system.
type shared struct {
	mu    sync.Mutex
	words [keptAt + Kept]atomic.Uint64
}

// Raise sets the raised number to at least n, and returns it.
func (s *Numbers) Raise(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words[0].Store(max(s.words[0].Load(), n))
	return s.words[0].Load()
}

// Kept returns a kept number.
func (s *Numbers) Kept(i int) uint64 { return s.words[keptAt+i].Load() }

// Keep replaces a kept number if it still equals old.
func (s *Numbers) Keep(i int, old, n uint64) bool { return s.words[keptAt+i].CompareAndSwap(old, n) }

// Confirm does nothing, because numbers do not survive a process here.
func (*Numbers) Confirm(int) {}

// Close does nothing here.
func (*Numbers) Close() error { return nil }
