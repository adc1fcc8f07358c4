package feed

import (
	"bufio"
	"errors"
	"io"

	"github.com/varvedb/varve/store/driver"
)

// source is the stream below a tar reader. It buffers, because the zstd decoder
// reads three bytes at a time. It also records two facts that archive/tar does
// not report: whether the input ended before the end mark, and whether an error
// was the input's own.
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
// present and nothing follows it. archive/tar does not notice a file that was
// cut between two entries, and it stops in the middle of two concatenated tars.
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

// classify returns the input's own error unchanged; any other error is reported
// as a format error.
func (s *source) classify(err error) error {
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
