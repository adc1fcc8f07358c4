package pgembed

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
)

// The part of a log that errors carry.
const (
	tailBytes = 4 << 10
	tailLines = 12
)

// readTail returns the last lines of a file.
func readTail(path string) (text string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	end, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-tailBytes), tailBytes))
	return lastLines(end), err
}

// lastLines returns the last lines of a text that may begin within a line.
func lastLines(text []byte) string {
	text = bytes.ToValidUTF8(bytes.TrimSpace(text), []byte("?"))
	if n := len(text) - tailBytes; n > 0 {
		text = text[n:]
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
