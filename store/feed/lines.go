package feed

import (
	"errors"
	"io"

	"github.com/varvedb/varve/internal/line"
)

// lineReader cuts a stream into lines, within limits.
type lineReader struct {
	lines *line.Reader
	left  int64 // bytes that the stream may still give
	limit int64
}

func newLineReader(lim limits) *lineReader {
	return &lineReader{lines: line.NewReader(nil, lim.line), limit: lim.entry}
}

func (l *lineReader) reset(r io.Reader) {
	l.lines.Reset(r)
	l.left = l.limit
}

// next returns the next line without its line feed, which the last line may
// lack, or false after the last. The line is valid until the next call.
func (l *lineReader) next() (text []byte, ok bool, err error) {
	text, took, err := l.lines.Next()
	l.left -= int64(took)
	long := new(line.LongError)
	switch {
	case l.left < 0:
		return nil, false, malformed("the entry is longer than %d bytes", l.limit)
	case errors.As(err, &long):
		return nil, false, formatError{err}
	case errors.Is(err, io.EOF):
		return nil, false, nil
	}
	return text, err == nil, err
}
