package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
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

// A virtual machine gives memory that became free back to its host: Linux in
// rounds of 2 s, each a sixteenth of what is free (mm/page_reporting.c). A read
// from the disk waits up to 0.1 s for such a round (docs/results/README.md).
const (
	settleAbove = 1 << 30 // bytes; less is given back in rounds that are not felt
	settleTime  = 45 * time.Second
)

// Evict writes a file, or the regular files below a directory, to the disk and
// drops them from the page cache. Mapped or locked pages stay, and so does
// everything in a memory file system; that is no error. After much has been
// dropped, it waits until the host of a virtual machine has taken the memory, so
// that a measurement does not begin meanwhile.
func Evict(ctx context.Context, path string) error {
	before, err := Residency(path)
	if err != nil {
		return err
	}
	left := before
	for range tries {
		if err := each(path, func(f *os.File, _ int64) error { return EvictFile(f) }); err != nil {
			return err
		}
		if left, err = Residency(path); err != nil {
			return err
		}
		if left.Resident == 0 {
			break
		}
	}
	if (before.Resident-left.Resident)*int64(os.Getpagesize()) < settleAbove {
		return nil
	}
	select {
	case <-time.After(settleTime):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// EvictFile writes an open file to the disk and drops it from the page cache.
func EvictFile(f *os.File) error {
	if err := f.Sync(); err != nil { // dirty pages cannot be dropped
		return err
	}
	return dontNeed(f)
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
