package sqlitewal

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/varvedb/varve/internal/filesync"
)

// reserve makes the log's file longer before it is needed, concurrently with
// the writer. A commit that makes a file longer waits for the file system's
// journal, and one that overwrites existing bytes does not: on ext4 that is
// half of a small commit's wait. SQLite overwrites the log from its beginning
// once it is restarted, so only the first round would be slow, but a round is
// 64 MB.
//
// The file is extended with zeros. Recovery ends at them as it does at the
// frames of an earlier round, because a frame of page 0 is not valid. They are
// written with O_APPEND, so they cannot overwrite frames, whichever process
// writes.
type reserve struct {
	path  string
	frame int64        // bytes
	limit int64        // frames at which the log is restarted; none is needed above
	ready atomic.Int64 // frames that the file has room for, or too many to ask again
}

// The sizes of a reserve in bytes.
const (
	reserveFrom  = 1 << 20 // a log that stays shorter gets none
	reserveAhead = 2 << 20 // it is made longer when less room than this is left
	reserveChunk = 4 << 20 // by so many
)

// spareDisk is the part of the free space that a reserve may take.
const spareDisk = 16

// wanted reports whether a log of so many frames is near the end of its file.
func (r *reserve) wanted(logged int64) bool {
	return logged*r.frame >= reserveFrom && logged+reserveAhead/r.frame > r.ready.Load() && logged < r.limit
}

// extend makes the file longer. When it cannot, the log grows as it would without:
// a commit gets the error, if there is one.
func (r *reserve) extend(ctx context.Context, logged int64) {
	if !r.wanted(logged) {
		return
	}
	r.ready.Store(r.limit) // if anything fails: never again
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // SQLite holds no locks on this file
	st, err := f.Stat()
	if err != nil {
		return
	}
	size, want := st.Size(), logged*r.frame+reserveChunk
	if free, err := filesync.Free(r.path); err != nil || uint64(max(want-size, 0)) > free/spareDisk {
		return
	}
	zeros := make([]byte, 512<<10) // a commit syncs all bytes written by then, so no more at once
	for ; size < want && ctx.Err() == nil; size += int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			return
		}
		if f.Sync() != nil {
			return
		}
	}
	r.ready.Store(size / r.frame)
}

// forget is called when the file was cut.
func (r *reserve) forget() { r.ready.Store(0) }
