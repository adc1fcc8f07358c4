package pgembed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store/driver"
)

// minFree is the free space, in bytes, below which a file system counts as
// full: it may be enough for a log line but not for a database page.
const minFree = 64 << 10

// noSharedMemory matches the message of a server that found no space in
// /dev/shm. It looks like a full disk.
var noSharedMemory = regexp.MustCompile(`shared memory segment.*No space left on device`)

// explain adds the matching sentinel error for a failed start, judging by the
// error and the program's output.
func explain(dir string, err error) error {
	var log *logError
	wrote := ""
	if errors.As(err, &log) {
		wrote = log.text
	}
	switch {
	case noSharedMemory.MatchString(wrote):
		return fmt.Errorf("%w: the shared memory, /dev/shm, is full; give it more, as with docker's --shm-size: %w", driver.ErrMemory, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT),
		strings.Contains(wrote, "No space left on device"),
		log != nil && isFull(dir): // where the log itself may be cut
		return fmt.Errorf("%w: %w", driver.ErrDiskFull, err)
	case errors.Is(err, syscall.EROFS), strings.Contains(wrote, "Read-only file system"):
		return fmt.Errorf("%w: %w", driver.ErrReadOnly, err)
	}
	return err
}

// isFull reports whether the file system of a directory is full.
func isFull(dir string) bool {
	free, err := filesync.Free(dir)
	return err == nil && free < minFree
}

// logError is an error with the end of a program's output.
type logError struct {
	err  error
	text string
}

func (e *logError) Error() string {
	if e.text == "" {
		return e.err.Error() + "; it wrote nothing"
	}
	return e.err.Error() + "; it wrote:\n\t" + strings.ReplaceAll(e.text, "\n", "\n\t")
}

func (e *logError) Unwrap() error { return e.err }

// How much of a log is included in errors.
const (
	tailBytes = 4 << 10
	tailLines = 12
)

// readTail returns the last lines of a file.
func readTail(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, _ = f.Seek(-tailBytes, io.SeekEnd) // a short one is read from its beginning
	end, err := io.ReadAll(f)
	return lastLines(end), err
}

// lastLines returns the last whole lines of a text, which may begin within a
// line.
func lastLines(text []byte) string {
	text = bytes.ToValidUTF8(bytes.TrimSpace(text), []byte("?"))
	if n := len(text) - tailBytes; n > 0 {
		text = text[n:]
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
