package feed

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"

	"github.com/varvedb/varve/store/entity"
)

// Tar is an open block tar in a file.
type Tar struct {
	file *os.File
	size int64
	done atomic.Int64
}

// OpenTar opens a block tar. Its content is checked as Blocks reads it.
func OpenTar(path string) (*Tar, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open block tar: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; use a file, or ReadTar for a stream", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open block tar: %w", errors.Join(err, file.Close()))
	}
	return &Tar{file: file, size: info.Size()}, nil
}

// Blocks streams the blocks from the first on, as ReadTar does; errors name the
// file. It can be iterated repeatedly, but only by one loop at a time.
func (t *Tar) Blocks() iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		t.done.Store(0)
		counted := &countingReader{r: io.NewSectionReader(t.file, 0, t.size), n: &t.done}
		for b, err := range ReadTar(counted) {
			if err != nil {
				err = fmt.Errorf("%s: %w", t.file.Name(), err)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// TarBlocks streams the blocks of a block tar, and opens the file for each
// loop. It can be iterated repeatedly, also by several loops at a time.
func TarBlocks(path string) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		t, err := OpenTar(path)
		if err != nil {
			yield(entity.Block{}, err)
			return
		}
		defer t.Close()
		t.Blocks()(yield)
	}
}

// Progress returns how many bytes the loop over Blocks has read, and the size
// of the file. It may be called from another goroutine.
func (t *Tar) Progress() (done, total int64) { return t.done.Load(), t.size }

// Close closes the file. No loop over Blocks may be running.
func (t *Tar) Close() error { return t.file.Close() }

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
