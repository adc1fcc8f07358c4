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
// where the file system can. All is on the disk when it returns, so that a
// measurement that follows does not pay for it.
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
	if err != nil {
		return err
	}
	return flush(dst)
}

func cloneEntry(dst, src string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		if err := os.Mkdir(dst, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Chmod(dst, mode.Perm()) // Mkdir obeys the umask
	case mode.Type() == fs.ModeSymlink:
		target, err := os.Readlink(src)
		if err != nil {
			return err
		}
		return os.Symlink(target, dst)
	case mode.IsRegular():
		return cloneFile(dst, src, mode.Perm())
	}
	return fmt.Errorf("copy %q: neither file, directory nor link; is the database still open?", src)
}

func cloneFile(dst, src string, mode fs.FileMode) (err error) {
	from, err := os.Open(src)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if !reflink(to, from) {
		if _, err := io.Copy(to, from); err != nil {
			return err
		}
	}
	return to.Chmod(mode)
}

// syncFiles writes every file below a directory to the disk, one by one.
func syncFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// fileSize is a file of a data set with its size in bytes.
type fileSize struct {
	Path  string `json:"path"` // relative, with slashes
	Bytes int64  `json:"bytes"`
}

// listFiles returns the files below a directory in a fixed order.
func listFiles(dir string) ([]fileSize, error) {
	var list []fileSize
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		list = append(list, fileSize{Path: filepath.ToSlash(rel), Bytes: info.Size()})
		return err
	})
	return list, err
}
