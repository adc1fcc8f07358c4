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

// image has the files of a closed or stopped database, in memory.
type image []imageFile

type imageFile struct {
	path string // relative
	mode fs.FileMode
	data []byte
	aim  string // "database" or "log" if a fault may hit it
}

// takeImage reads all files below a directory, in order. Aim selects the files
// that faults may hit; nil means all.
func takeImage(dir string, aim func(path string) bool) (image, error) {
	var im image
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || leftOut(rel) {
			return nil
		}
		if err != nil || !d.IsDir() && !info.Mode().IsRegular() {
			return err
		}
		f := imageFile{path: rel, mode: info.Mode()}
		if !d.IsDir() {
			if f.data, err = os.ReadFile(path); err != nil {
				return err
			}
			if aim == nil || aim(rel) {
				f.aim = fileKind(rel)
			}
		}
		im = append(im, f)
		return nil
	})
	if err == nil && im.size("database")+im.size("log") == 0 {
		err = fmt.Errorf("no file to damage in %q", dir)
	}
	return im, err
}

// leftOut reports whether a file belongs to a running process, or is recreated
// at each start.
func leftOut(path string) bool {
	base := filepath.Base(path)
	return strings.HasSuffix(base, "-shm") || base == "postmaster.pid" || strings.HasPrefix(base, ".s.")
}

// fault is one change of one file.
type fault struct {
	file   int
	kind   string // "bit", "cut" or "sector"; "" is none
	offset int64
	bit    uint
}

// describe describes the fault.
func (f fault) describe(im image) string {
	return fmt.Sprintf("%s at %d of %s", f.kind, f.offset, im[f.file].path)
}

// size is the number of bytes that can be hit in files of a kind.
func (im image) size(aim string) (n int64) {
	for i := range im {
		if im[i].aim == aim {
			n += int64(len(im[i].data))
		}
	}
	return n
}

// draw draws a fault: if there is a log, one in four hits it. Of ten faults
// eight flip a bit, one truncates a file, and one overwrites a sector of 512
// bytes with another's content.
func (im image) draw(rng *rand.Rand) fault {
	f := fault{kind: "bit", bit: uint(rng.IntN(8))}
	aim := "database"
	if rng.IntN(4) == 0 && im.size("log") > 0 || im.size(aim) == 0 {
		aim = "log"
	}
	f.offset = rng.Int64N(im.size(aim))
	for i := range im {
		size := int64(len(im[i].data))
		if im[i].aim == aim {
			if f.file = i; f.offset < size {
				break
			}
			f.offset -= size
		}
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

// damaged returns a file's content after a fault.
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
func (im image) restore(dir string, f fault) error {
	for i, file := range im {
		path := filepath.Join(dir, file.path)
		if file.mode.IsDir() {
			if err := os.MkdirAll(path, file.mode.Perm()|0o700); err != nil {
				return err
			}
			continue
		}
		if f.file == i && f.kind != "" {
			file.data = f.damaged(file.data)
		}
		if err := os.WriteFile(path, file.data, file.mode.Perm()|0o600); err != nil {
			return err
		}
	}
	return nil
}
