//go:build !unix

package filelease

import (
	"os"
	"sync"
)

// Number is a number of its own for each, on this system.
type Number struct {
	Path string
	Mode os.FileMode

	mu    sync.Mutex
	value uint64
}

// Raise makes the number at least n, and returns it.
func (s *Number) Raise(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = max(s.value, n)
	return s.value
}

// Close ends the use. The number stays what it was.
func (*Number) Close() error { return nil }
