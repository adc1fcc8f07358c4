package pgembed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// socketPort is part of the socket's name; no port is opened.
	socketPort = "5432"
	socketName = ".s.PGSQL." + socketPort
	// socketLink is the socket's directory in the server's own, or a link to it.
	socketLink = "socket"
	// maxSocketPath is the longest path of a Unix socket, in bytes.
	maxSocketPath = 107
	// tempPrefix starts the names of socket directories outside of Dir.
	tempPrefix = "varve-postgres-"
)

// socketDir is the directory of a server's socket.
type socketDir struct {
	path string
	link string // in the server's directory, to path; empty when path is there itself
}

// makeSocketDir makes the directory of the socket, open to its owner only: in
// dir, or for the temporary files when a socket's path in dir would be too long
// or hold what a connection string cannot. What an earlier server left is
// removed.
func makeSocketDir(dir string, owner *identity) (*socketDir, error) {
	path := filepath.Join(dir, socketLink)
	if err := clearSocketDir(path); err != nil {
		return nil, err
	}
	if !usableSocketDir(path) {
		return makeTempSocketDir(path, owner)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	s := &socketDir{path: path}
	if err := owner.own(path); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// makeTempSocketDir makes the directory outside of the server's own. The link
// tells the next start where it was.
func makeTempSocketDir(link string, owner *identity) (*socketDir, error) {
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		path, err := os.MkdirTemp(temp, tempPrefix)
		if err != nil {
			return nil, err
		}
		s := &socketDir{path: path}
		if !usableSocketDir(path) {
			if err := s.remove(); err != nil {
				return nil, err
			}
			continue
		}
		if err := errors.Join(owner.own(path), os.Symlink(path, link)); err != nil {
			return nil, errors.Join(err, s.remove())
		}
		s.link = link
		return s, nil
	}
	return nil, fmt.Errorf("no directory for the socket: its path may have at most %d bytes; use a shorter one than %q",
		maxSocketPath, link)
}

// usableSocketDir tells whether a socket can be made in the directory and be
// named in a connection string and in the server's list of directories.
func usableSocketDir(path string) bool {
	special := func(r rune) bool { return r <= ' ' || strings.ContainsRune(`'",\`, r) }
	return len(path)+len("/"+socketName) <= maxSocketPath && !strings.ContainsFunc(path, special)
}

// clearSocketDir removes the socket directory of a server that has ended, found
// by its path or its link.
func clearSocketDir(path string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return (&socketDir{path: path}).remove()
	}
	if !strings.HasPrefix(filepath.Base(target), tempPrefix) {
		return fmt.Errorf("%q links to %q, which is no directory of ours; remove the link", path, target)
	}
	return (&socketDir{path: target, link: path}).remove()
}

// RemoveSockets removes what killed servers below a directory have left outside of it.
func RemoveSockets(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() != fs.ModeSymlink || entry.Name() != socketLink {
			return err
		}
		return clearSocketDir(path)
	})
}

// remove removes the directory with the socket and its lock file, and nothing
// else: a directory that holds something else stays, with an error.
func (s *socketDir) remove() error {
	paths := []string{filepath.Join(s.path, socketName), filepath.Join(s.path, socketName+".lock"), s.path}
	if s.link != "" {
		paths = append(paths, s.link)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
