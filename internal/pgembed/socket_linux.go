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
	// socketLink is the name of the socket's directory, or of a link to it, in
	// the server's directory.
	socketLink = "socket"
	// maxSocketPath is the longest path of a Unix socket, in bytes.
	maxSocketPath = 107
	// tempPrefix starts the names of socket directories outside of Dir.
	tempPrefix = "varve-postgres-"
)

// makeSocketDir creates the directory of the socket, accessible only to its
// owner. It is in dir, or among the temporary files if the socket's path in dir
// would be too long or contain characters that a connection string cannot. An
// earlier server's socket is removed.
func makeSocketDir(dir string, owner *identity) (path string, err error) {
	link := filepath.Join(dir, socketLink)
	if err := clearSocketDir(link); err != nil {
		return "", err
	}
	if path = link; usableSocketDir(link) {
		err = os.Mkdir(link, 0o700)
	} else {
		path, err = makeTempSocketDir(link)
	}
	if err != nil {
		return "", err
	}
	if err := owner.own(path); err != nil {
		return "", errors.Join(err, clearSocketDir(link))
	}
	return path, nil
}

// makeTempSocketDir creates the directory outside of the server's directory.
// The link tells the next start where it is.
func makeTempSocketDir(link string) (string, error) {
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		if !usableSocketDir(filepath.Join(temp, tempPrefix+"1234567890")) {
			continue
		}
		path, err := os.MkdirTemp(temp, tempPrefix)
		if err != nil {
			return "", err
		}
		if err := os.Symlink(path, link); err != nil {
			return "", errors.Join(err, os.Remove(path))
		}
		return path, nil
	}
	return "", fmt.Errorf("no directory for the socket: its path may have at most %d bytes; use a shorter one than %q",
		maxSocketPath, link)
}

// usableSocketDir reports whether a socket in the directory has a valid path,
// and can be named in a connection string and in the server's list of
// directories.
func usableSocketDir(path string) bool {
	special := func(r rune) bool { return r <= ' ' || strings.ContainsRune(`'",\`, r) }
	return len(path)+len("/"+socketName) <= maxSocketPath && !strings.ContainsFunc(path, special)
}

// clearSocketDir removes the socket directory of a server that has ended, found
// by its path or its link, with the socket and its lock file. If the directory
// contains anything else, it stays, and an error is returned.
func clearSocketDir(link string) error {
	dir, err := os.Readlink(link)
	if err != nil {
		dir = link
	} else if !strings.HasPrefix(filepath.Base(dir), tempPrefix) {
		return fmt.Errorf("%q links to %q, which is no directory of ours; remove the link", link, dir)
	}
	for _, path := range []string{filepath.Join(dir, socketName), filepath.Join(dir, socketName+".lock"), dir, link} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// RemoveSockets removes the socket directories that killed servers below a
// directory have left outside of it.
func RemoveSockets(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() != fs.ModeSymlink || entry.Name() != socketLink {
			return err
		}
		return clearSocketDir(path)
	})
}
