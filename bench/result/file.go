package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// lineFile is a file of lines that several processes append to. Each line is on
// the disk before the next begins, and only its last line can be torn: by a
// process that ended while it wrote it.
type lineFile struct {
	f     *os.File
	known int64                   // bytes that were seen, all whole lines
	see   func(line []byte) error // is given each line, whoever wrote it
}

// openLines opens or makes a file and sees the lines that it has.
func openLines(path string, see func([]byte) error) (*lineFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &lineFile{f: f, see: see}
	if _, err := l.catchUp(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// add adds a line, which next returns after the lines of other processes were
// seen; nil adds none. A torn line before it is cut off.
func (l *lineFile) add(next func() ([]byte, error)) (err error) {
	unlock, err := lockFile(l.f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	torn, err := l.catchUp()
	if err != nil {
		return err
	}
	line, err := next()
	if err != nil || line == nil {
		return err
	}
	if torn {
		if err := l.f.Truncate(l.known); err != nil {
			return fmt.Errorf("cut off a torn line: %w", err)
		}
	}
	line = append(line, '\n')
	if _, err := l.f.Write(line); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.known += int64(len(line))
	return l.see(line[:len(line)-1])
}

// catchUp sees the whole lines that were added since the last time and tells
// whether a torn one is behind them.
func (l *lineFile) catchUp() (torn bool, err error) {
	info, err := l.f.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() < l.known {
		return false, fmt.Errorf("%q has shrunk: open the result set again", l.f.Name())
	}
	if info.Size() == l.known {
		return false, nil
	}
	text := make([]byte, info.Size()-l.known)
	if _, err := l.f.ReadAt(text, l.known); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	n, err := eachLine(text, l.see)
	l.known += int64(n)
	if err != nil {
		return false, fmt.Errorf("%q, at byte %d: %w", l.f.Name(), l.known, err)
	}
	return n < len(text), nil
}

func (l *lineFile) close() error { return l.f.Close() }

// eachLine calls see with every whole line of text and returns how many bytes
// these are, newlines included, up to the line that see refuses.
func eachLine(text []byte, see func([]byte) error) (n int, err error) {
	for {
		end := bytes.IndexByte(text[n:], '\n')
		if end < 0 {
			return n, nil
		}
		if err := see(text[n : n+end]); err != nil {
			return n, err
		}
		n += end + 1
	}
}
