package bench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cloneTree copies a closed database: files, directories with their
// permissions, and symbolic links. Files share their blocks with the original
// where the system and its file system can, which io.Copy asks for. All is on the
// disk when it returns, so that a measurement that follows does not pay for it.
func cloneTree(dst, src string) error {
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		return cloneEntry(filepath.Join(dst, rel), path, d)
	})
	return errors.Join(err, flush(dst))
}

func cloneEntry(dst, src string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		if err = os.Mkdir(dst, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case mode.Type() == fs.ModeSymlink:
		target, err := os.Readlink(src)
		if err != nil {
			return err
		}
		return os.Symlink(target, dst)
	case mode.IsRegular():
		err = cloneFile(dst, src)
	default:
		err = fmt.Errorf("copy %q: neither file, directory nor link; is the database still open?", src)
	}
	if err != nil {
		return err
	}
	return os.Chmod(dst, info.Mode().Perm()) // not what the umask leaves
}

func cloneFile(dst, src string) (err error) {
	from, err := os.Open(src)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// fileSize is a file of a data set with its size in bytes.
type fileSize struct {
	Path  string `json:"path"` // relative, with slashes
	Bytes int64  `json:"bytes"`
}

// listFiles returns the files below a directory in a fixed order.
func listFiles(dir string) ([]fileSize, error) {
	var list []fileSize
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			list = append(list, fileSize{Path: path, Bytes: info.Size()})
		}
		return err
	})
	return list, err
}
