package feed

import (
	"bufio"
	"errors"
	"io"

	"github.com/varvedb/varve/store/driver"
)

// source is the stream below a tar reader. It buffers (the zstd decoder reads three bytes at a
// time) and remembers what archive/tar does not tell: whether the input ended before the end mark,
// and whether an error was the input's own.
type source struct {
	buf   *bufio.Reader
	ended bool  // a read asked for more bytes than there were
	err   error // of the input, other than io.EOF
}

const sourceBuffer = 256 << 10

func (s *source) Read(p []byte) (int, error) {
	n, err := s.buf.Read(p)
	switch {
	case err == io.EOF:
		s.ended = true
	case err != nil:
		s.err = err
	}
	return n, err
}

// finish checks, after archive/tar reported the end, that the end mark was
// there and that nothing follows it. archive/tar takes a file cut between two
// entries for a whole one, and stops in the middle of two tars joined by cat.
func (s *source) finish() error {
	if s.ended {
		return errTruncated
	}
	var block [4096]byte
	for {
		n, err := s.Read(block[:])
		for _, c := range block[:n] {
			if c != 0 {
				return malformed("data after the end of the tar")
			}
		}
		if s.ended {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var errTruncated = malformed("the tar is cut off before its end mark")

// blame decides whose fault err is: the input's own error is returned as it
// is, anything else is a matter of format.
func (s *source) blame(err error) error {
	switch {
	case s.err != nil:
		return s.err
	case s.ended && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)):
		return errTruncated
	case errors.Is(err, ErrFormat):
		return err
	}
	return driver.Of(ErrFormat, err)
}
