package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// stdin is the name of standard input.
const stdin = "-"

// maxWindow bounds the memory of decompression, as the zstd command does.
const maxWindow = 128 << 20

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Text is an open file of lines, or standard input, decompressed.
type Text struct {
	io.Reader
	file *os.File
	zstd *zstd.Decoder // nil: it is not compressed
	read atomic.Int64  // bytes of the file
}

// OpenText opens a file, or standard input for "-", compressed with zstd or not.
func OpenText(name string) (*Text, error) {
	t := &Text{file: os.Stdin}
	if name != stdin {
		var err error
		if t.file, err = os.Open(name); err != nil {
			return nil, err
		}
	}
	buffered := bufio.NewReaderSize(counting{t}, 1<<16)
	t.Reader = buffered
	if magic, _ := buffered.Peek(len(zstdMagic)); bytes.Equal(magic, zstdMagic) {
		dec, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.Reader, t.zstd = dec, dec
	}
	return t, nil
}

// Close closes the file; standard input stays open.
func (t *Text) Close() error {
	if t.zstd != nil {
		t.zstd.Close()
	}
	if t.file == os.Stdin {
		return nil
	}
	return t.file.Close()
}

// counting counts the bytes read from the file.
type counting struct{ t *Text }

func (c counting) Read(p []byte) (int, error) {
	n, err := c.t.file.Read(p)
	c.t.read.Add(int64(n))
	return n, err
}

// openLines returns the blocks in JSON lines. Each loop opens the file again.
func openLines(name string) *Source {
	var now atomic.Pointer[Text] // the text that the last loop has opened
	s := &Source{Close: func() error { return nil }, identity: func() (string, error) { return fileIdentity(name) }}
	if name == stdin {
		s.identity = func() (string, error) {
			return "", driver.Of(driver.ErrURL, errors.New("standard input is read once; write the lines to a file, and give that"))
		}
	} else {
		s.Progress = func() (done, total int64) {
			if st, err := os.Stat(name); err == nil {
				total = st.Size()
			}
			if t := now.Load(); t != nil {
				done = t.read.Load()
			}
			return done, total
		}
	}
	s.Blocks = func(yield func(entity.Block, error) bool) {
		if name == stdin && now.Load() != nil {
			_, err := s.identity()
			yield(entity.Block{}, err)
			return
		}
		t, err := OpenText(name)
		if err != nil {
			yield(entity.Block{}, err)
			return
		}
		defer t.Close()
		now.Store(t)
		for b, err := range feed.ReadLines(t) {
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			if !yield(b, err) {
				return
			}
		}
	}
	return s
}
