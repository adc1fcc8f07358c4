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
	"slices"
	"strings"

	"github.com/xi2/xz"
	"golang.org/x/sys/unix"
)

// unpackArchive unpacks the only .txz in a zip file into a directory.
func unpackArchive(ctx context.Context, path, dir string) error {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	at := slices.IndexFunc(archive.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, ".txz") })
	if at < 0 {
		return errors.New("it holds no .txz")
	}
	member, err := archive.File[at].Open()
	if err != nil {
		return err
	}
	defer member.Close()
	plain, err := xz.NewReader(member, 0)
	if err != nil {
		return err
	}
	return unpackTar(ctx, plain, dir)
}

// unpackTar writes the directories, files and symbolic links of a tar stream
// below dir. A name or link that leads out of dir is an error.
func unpackTar(ctx context.Context, stream io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
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
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm()|0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), header.Linkname)) || filepath.IsAbs(header.Linkname) {
			return fmt.Errorf("link to %q leads out of the archive", header.Linkname)
		}
		return root.Symlink(header.Linkname, name)
	}
	return fmt.Errorf("type %q is not expected in the archive", header.Typeflag)
}

// syncTree makes all files of a file system durable. For a thousand small files
// one sync of the whole file system is faster than syncing each.
func syncTree(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}
