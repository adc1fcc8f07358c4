//go:build !unix

package filelease

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/store/driver"
)

// Lock fails: without it two processes would spoil what they share.
func Lock(*os.File) error {
	return fmt.Errorf("%w: locks that end with a process, on this system", driver.ErrUnsupported)
}

// shared is of this process alone, on this system.
type shared struct {
	mu    sync.Mutex
	words [keptAt + Kept]atomic.Uint64
}

// Raise makes the number that is raised at least n, and returns it.
func (s *Numbers) Raise(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words[0].Store(max(s.words[0].Load(), n))
	return s.words[0].Load()
}

// Kept returns a number that is kept.
func (s *Numbers) Kept(i int) uint64 { return s.words[keptAt+i].Load() }

// Keep replaces a number that is kept, if it is still the old one.
func (s *Numbers) Keep(i int, old, n uint64) bool { return s.words[keptAt+i].CompareAndSwap(old, n) }

// Confirm does nothing: no process leaves anything.
func (*Numbers) Confirm(int) {}

// Close ends the use. The numbers stay what they were.
func (*Numbers) Close() error { return nil }
