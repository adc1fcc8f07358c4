package bench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// cloneTree copies a closed database: files, directories with their
// permissions, and symbolic links. Files share their blocks with the original
// where the system and its file system can, which io.Copy asks for. All is on the
// disk when it returns, so that a measurement that follows does not pay for it.
func cloneTree(dst, src string) error {
	from := os.DirFS(src)
	if err := os.CopyFS(dst, from); err != nil {
		return err
	}
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(dst, path), info.Mode().Perm()) // not what the umask leaves
	})
	return errors.Join(err, flush(dst))
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
