// Package line cuts a text into lines of a bounded length.
package line

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Reader reads lines. It holds no more than one, however long the text is.
type Reader struct {
	buf  *bufio.Reader
	long []byte // a line that did not fit the buffer
	max  int
}

const bufferSize = 256 << 10

// LongError tells of a line that is longer than Max bytes.
type LongError struct{ Max int }

// Error implements error.
func (e *LongError) Error() string { return fmt.Sprintf("the line is longer than %d bytes", e.Max) }

// NewReader returns a reader of lines of up to a number of bytes. The text may be nil and be
// given by Reset.
func NewReader(text io.Reader, most int) *Reader {
	return &Reader{buf: bufio.NewReaderSize(text, bufferSize), max: most}
}

// Reset begins with another text.
func (r *Reader) Reset(text io.Reader) { r.buf.Reset(text) }

// Next returns the next line without its line feed, which the last line may lack, and how
// many bytes it took. The line is valid until the next call. It fails with io.EOF after the
// last line, and with a *LongError.
func (r *Reader) Next() (text []byte, took int, err error) {
	line, err := r.buf.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = r.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) && len(r.long)+len(line) <= r.max {
			r.long = append(r.long, line...)
			line, err = r.buf.ReadSlice('\n')
		}
		r.long = append(r.long, line...)
		line = r.long
	}
	text = bytes.TrimSuffix(line, []byte{'\n'})
	switch {
	case len(text) > r.max:
		return nil, len(line), &LongError{r.max}
	case errors.Is(err, io.EOF) && len(line) > 0:
		err = nil
	}
	return text, len(line), err
}
