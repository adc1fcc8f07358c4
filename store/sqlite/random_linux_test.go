package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestReadsOnlyWhatIsAsked: reads by key take from the disk the pages of their
// rows, on each of several connections, and not the rows behind these. A
// payload's pages lie one behind the other, which the system takes for the
// beginning of a file that is read to its end.
func TestReadsOnlyWhatIsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	open := func() (*store.DB, *store.Entities) {
		db, err := store.Open(t.Context(), "sqlite://"+path, &store.Options{Readers: 4})
		require.NoError(t, err)
		ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: "compact"})
		require.NoError(t, err)
		return db, ents
	}
	const blocks, perBlock, page = 20, 50, 4096
	const size = 6 * page // on seven pages, with its row
	key := func(n int) entity.Key { return entity.Key{byte(n), byte(n >> 8), 1} }
	db, ents := open()
	for b := range blocks {
		block := entity.Block{Number: uint64(b + 1)}
		for i := range perBlock {
			block.Ops = append(block.Ops, entity.Op{Kind: entity.Create, Key: key(b*perBlock + i), OpIndex: uint32(i), BTL: 1000, Content: make([]byte, size)})
		}
		_, err := ents.Apply(t.Context(), block)
		require.NoError(t, err)
	}
	require.NoError(t, ents.Flush(t.Context()))
	require.NoError(t, db.Close())
	file, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, file.Sync())
	require.NoError(t, unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED))
	require.NoError(t, file.Close())

	db, ents = open()
	defer func() { require.NoError(t, db.Close()) }()
	var snaps []*store.Snapshot // open at once, so that each has its connection
	for range 4 {
		snap, err := ents.At(t.Context(), store.Head)
		require.NoError(t, err)
		defer func() { require.NoError(t, snap.Close()) }()
		snaps = append(snaps, snap)
	}
	before := ioCount(t, "read_bytes")
	reads := 0
	for n := 0; n < blocks*perBlock; n += 20 {
		e, err := snaps[reads%len(snaps)].Get(t.Context(), key(n))
		require.NoError(t, err)
		require.Len(t, e.Content, size)
		reads++
	}
	pages := (ioCount(t, "read_bytes") - before) / page
	if pages == 0 {
		t.Skip("the file system keeps files in memory")
	}
	t.Logf("%d pages for %d reads", pages, reads)
	require.Less(t, pages, 2*reads*(size/page+1)) // else five times as many
}

// ioCount is a count of the bytes that this process has read or written.
func ioCount(t *testing.T, name string) (n int) {
	text, err := os.ReadFile("/proc/self/io")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), name+": ")
	_, err = fmt.Sscan(after, &n)
	require.NoError(t, err)
	return n
}
