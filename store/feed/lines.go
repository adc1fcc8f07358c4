package feed

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader cuts a stream into lines, within limits.
type lineReader struct {
	buf     *bufio.Reader
	long    []byte // a line that did not fit the buffer
	maxLine int
	left    int64 // bytes that the stream may still give
	limit   int64
}

const lineBuffer = 256 << 10

func newLineReader(lim limits) *lineReader {
	return &lineReader{buf: bufio.NewReaderSize(nil, lineBuffer), maxLine: lim.line, limit: lim.entry}
}

func (l *lineReader) reset(r io.Reader) {
	l.buf.Reset(r)
	l.left = l.limit
}

// next returns the next line without its line feed, which the last line may
// lack, or false after the last. The line is valid until the next call.
func (l *lineReader) next() (text []byte, ok bool, err error) {
	line, err := l.buf.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) && len(l.long)+len(line) <= l.maxLine {
			l.long = append(l.long, line...)
			line, err = l.buf.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	l.left -= int64(len(line))
	text = bytes.TrimSuffix(line, []byte{'\n'})
	switch {
	case l.left < 0:
		return nil, false, malformed("the entry is longer than %d bytes", l.limit)
	case len(text) > l.maxLine:
		return nil, false, malformed("the line is longer than %d bytes", l.maxLine)
	case err == nil, err == io.EOF && len(line) > 0:
		return text, true, nil
	case err == io.EOF:
		return nil, false, nil
	}
	return nil, false, err
}
