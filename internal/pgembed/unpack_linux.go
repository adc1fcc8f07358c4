package pgembed

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xi2/xz"
	"golang.org/x/sys/unix"
)

// unpackArchive unpacks the one .txz in a zip file into a directory.
func unpackArchive(ctx context.Context, path, dir string) (err error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, ".txz") {
			return unpackMember(ctx, file, dir)
		}
	}
	return errors.New("it holds no .txz")
}

func unpackMember(ctx context.Context, file *zip.File, dir string) (err error) {
	member, err := file.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, member.Close()) }()
	plain, err := xz.NewReader(member, 0)
	if err != nil {
		return err
	}
	return unpackTar(ctx, plain, dir)
}

// unpackTar writes the directories, files and symbolic links of a tar stream
// below dir. A name or a link that leads out of it is an error.
func unpackTar(ctx context.Context, stream io.Reader, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for r := tar.NewReader(stream); ctx.Err() == nil; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := unpackEntry(root, header, r); err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
	return context.Cause(ctx)
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(header.Name)
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return unpackFile(root, name, header.FileInfo().Mode().Perm()|0o644, content)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), header.Linkname)) || filepath.IsAbs(header.Linkname) {
			return fmt.Errorf("link to %q leads out of the archive", header.Linkname)
		}
		return root.Symlink(header.Linkname, name)
	}
	return fmt.Errorf("type %q is not expected in the archive", header.Typeflag)
}

func unpackFile(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// syncTree makes all files of a file system durable; a thousand small files
// are synced faster together than one by one.
func syncTree(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return unix.Syncfs(int(d.Fd()))
}
