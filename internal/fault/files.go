package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// image is the files of a closed or stopped database, in memory.
type image struct {
	dirs  []imageDir
	files []imageFile
}

type imageDir struct {
	path string
	mode fs.FileMode
}

type imageFile struct {
	path string // relative
	mode fs.FileMode
	data []byte
	aim  bool
}

// takeImage reads all files below a directory. Aim tells which of them faults hit;
// nil is all.
func takeImage(dir string, aim func(path string) bool) (*image, error) {
	im := &image{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || leftOut(rel) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			im.dirs = append(im.dirs, imageDir{rel, info.Mode().Perm()})
			return nil
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f := imageFile{path: rel, mode: info.Mode().Perm(), data: data, aim: (aim == nil || aim(rel)) && len(data) > 0}
		im.files = append(im.files, f)
		return nil
	})
	if err == nil && im.size("database")+im.size("log") == 0 {
		err = fmt.Errorf("no file to damage in %q", dir)
	}
	return im, err
}

// leftOut are files that are of a running process, or made anew.
func leftOut(path string) bool {
	base := filepath.Base(path)
	return strings.HasSuffix(base, "-shm") || base == "postmaster.pid" || strings.HasPrefix(base, ".s.")
}

// fault is one change of one file.
type fault struct {
	file   int
	kind   string // "bit", "cut" or "sector"
	offset int64
	bit    uint
}

// String names the fault.
func (f fault) describe(im *image) string {
	return fmt.Sprintf("%s at %d of %s", f.kind, f.offset, im.files[f.file].path)
}

// size is the bytes that can be hit of a kind of files.
func (im *image) size(place string) (n int64) {
	for i := range im.files {
		if im.files[i].aim && where(im.files[i].path) == place {
			n += int64(len(im.files[i].data))
		}
	}
	return n
}

// draw draws a fault: one of four in the log, where there is one; of ten, eight flip a bit, one cuts a file, one fills a
// sector of 512 bytes with another's content.
func (im *image) draw(rng *rand.Rand) fault {
	f := fault{kind: "bit", bit: uint(rng.IntN(8))}
	place := "database"
	if rng.IntN(4) == 0 && im.size("log") > 0 || im.size(place) == 0 {
		place = "log"
	}
	at := rng.Int64N(im.size(place))
	for i := range im.files {
		size := int64(len(im.files[i].data))
		if !im.files[i].aim || where(im.files[i].path) != place {
			continue
		}
		if at < size {
			f.file, f.offset = i, at
			break
		}
		at -= size
	}
	switch rng.IntN(10) {
	case 0:
		f.kind = "cut"
	case 1:
		f.kind = "sector"
		f.offset -= f.offset % 512
	}
	return f
}

// damaged returns the content of a file after a fault.
func (f fault) damaged(data []byte) []byte {
	switch f.kind {
	case "cut":
		return data[:f.offset]
	case "sector":
		changed := slices.Clone(data)
		end := min(f.offset+512, int64(len(data)))
		for i := f.offset; i < end; i++ {
			changed[i] = data[(i*7+4099)%int64(len(data))]
		}
		return changed
	}
	changed := slices.Clone(data)
	changed[f.offset] ^= 1 << f.bit
	return changed
}

// restore writes the files into an empty directory, one of them with a fault.
func (im *image) restore(dir string, f *fault) error {
	for _, d := range im.dirs {
		if err := os.MkdirAll(filepath.Join(dir, d.path), d.mode|0o700); err != nil {
			return err
		}
	}
	for i := range im.files {
		data := im.files[i].data
		if f != nil && f.file == i {
			data = f.damaged(data)
		}
		if err := os.WriteFile(filepath.Join(dir, im.files[i].path), data, im.files[i].mode|0o600); err != nil {
			return err
		}
	}
	return nil
}
