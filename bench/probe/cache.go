package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Pages counts pages of files.
type Pages struct {
	Resident int64 // in the page cache
	Total    int64
}

// Share returns the resident share, 0…1; 0 when there are no pages.
func (p Pages) Share() float64 {
	if p.Total == 0 {
		return 0
	}
	return float64(p.Resident) / float64(p.Total)
}

// Residency counts how much of a file, or of the regular files below a
// directory, is in the page cache. It uses mincore, like vmtouch, and changes
// nothing. The process must own the files or be allowed to write them: for
// other files the kernel reports every page as resident.
func Residency(path string) (sum Pages, err error) {
	err = each(path, func(f *os.File, size int64) error {
		pages, err := mincore(f, size)
		sum.Resident += pages.Resident
		sum.Total += pages.Total
		return err
	})
	return sum, err
}

// Fill reads a file, or the regular files below a directory, into the page
// cache, up to a number of bytes. It reads files in the order of their names,
// so that each run caches the same part.
func Fill(path string, bytes int64) error {
	return each(path, func(f *os.File, _ int64) error {
		n, err := io.Copy(io.Discard, io.LimitReader(f, max(bytes, 0)))
		bytes -= n
		return err
	})
}

// tries is how often Evict drops pages before it takes the rest as not
// evictable. The kernel skips busy pages, such as pages that move between the
// lists of one core.
const tries = 3

// Evict writes a file, or the regular files below a directory, to the disk and
// drops them from the page cache. Mapped or locked pages stay, and so does
// everything in a memory file system; that is no error.
func Evict(path string) error {
	for range tries {
		err := each(path, func(f *os.File, _ int64) error {
			if err := f.Sync(); err != nil { // dirty pages cannot be dropped
				return err
			}
			return dontNeed(f)
		})
		if err != nil {
			return err
		}
		if left, err := Residency(path); err != nil || left.Resident == 0 {
			return err
		}
	}
	return nil
}

// each calls do with a file, or with each regular file below a directory. Files
// that disappear meanwhile are skipped, because a checkpoint may remove a log.
func each(path string, do func(f *os.File, size int64) error) error {
	root, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				err = withFile(file, do)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("probe: %s: %w", path, err)
	}
	return nil
}

func withFile(path string, do func(f *os.File, size int64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return do(f, info.Size())
}
