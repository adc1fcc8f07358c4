package sqlite_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// The kept store has blocks 1 to 33 of formatBlock, written with a backlog of 16 by
// a program that read format 3 and was killed while it merged: the keys of the last
// three blocks were in their table, and the entities were not.
const keptBlocks = 33

func formatKey(id byte) entity.Key { return entity.Key{id, 1} }

func formatBlock(n uint64) entity.Block {
	b := entity.Block{Number: n}
	owner := func(id byte) entity.Address { return entity.Address{id % 5} }
	for i := range uint32(3) {
		id := byte(n*3) + byte(i)
		b.Ops = append(b.Ops, entity.Op{
			Kind: entity.Create, OpIndex: i, Key: formatKey(id), Owner: owner(id), BTL: 10 + uint64(id)*uint64(id)%97,
			ContentType: "text/plain", Content: fmt.Append(nil, "content ", id),
			StringAttributes: map[string]string{"type": string(rune('a' + id%3))}, NumericAttributes: map[string]uint64{"n": uint64(id)},
		})
	}
	if n > 2 {
		id := byte(n*3) - 4
		b.Ops = append(b.Ops, entity.Op{
			Kind: entity.Update, OpIndex: 3, Key: formatKey(id), Owner: owner(id), BTL: 50,
			ContentType: "text/plain", Content: fmt.Append(nil, "changed ", id), NumericAttributes: map[string]uint64{"n": uint64(id) + 1},
		})
	}
	if n%4 == 0 {
		id := byte(n*3) - 3
		b.Ops = append(b.Ops, entity.Op{Kind: entity.Delete, OpIndex: 4, Key: formatKey(id), Owner: owner(id)})
	}
	return b
}

// unpack writes a kept store to a path.
func unpack(t *testing.T, name, path string) {
	kept, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer func() { require.NoError(t, kept.Close()) }()
	unpacked, err := gzip.NewReader(kept)
	require.NoError(t, err)
	file, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, file, 0o600))
}

// TestFormat3 checks that a store of the format before opens, read-only without a
// change, and goes on as one that was always of this format.
func TestFormat3(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "kept.db")
	unpack(t, "compact-3.db.gz", path)

	always, err := store.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "new.db"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, always.Close()) }()
	model, err := always.Entities(ctx, &store.EntityOptions{Backlog: 4})
	require.NoError(t, err)
	for n := uint64(1); n <= keptBlocks; n++ {
		_, err := model.Apply(ctx, formatBlock(n))
		require.NoError(t, err)
	}

	// same compares all keys at a block, and the heads.
	same := func(ents *store.Entities, at uint64) {
		want, err := model.Head(ctx)
		require.NoError(t, err)
		head, err := ents.Head(ctx)
		require.NoError(t, err)
		require.Equal(t, want, head)
		left, err := model.At(ctx, at)
		require.NoError(t, err)
		right, err := ents.At(ctx, at)
		require.NoError(t, err)
		for id := range 256 {
			want, wantErr := left.Get(ctx, formatKey(byte(id)))
			got, err := right.Get(ctx, formatKey(byte(id)))
			require.Equal(t, wantErr == nil, err == nil, "entity %d at block %d: %v, %v", id, at, wantErr, err)
			require.Equal(t, want, got, "entity %d at block %d", id, at)
		}
		require.NoError(t, left.Close())
		require.NoError(t, right.Close())
	}
	checked := func(db *store.DB, format string) {
		report, err := db.Check(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, report.Err())
		info, err := db.Backup(ctx, io.Discard, nil)
		require.NoError(t, err)
		require.Equal(t, format, info.Format)
	}

	// A reader leaves it as it is.
	old, err := store.Open(ctx, "sqlite:"+path, &store.Options{ReadOnly: true})
	require.NoError(t, err)
	ents, err := old.Entities(ctx, nil)
	require.NoError(t, err)
	same(ents, keptBlocks)
	same(ents, 20)
	checked(old, "3")
	require.NoError(t, old.Close())

	// A writer goes on.
	old, err = store.Open(ctx, "sqlite:"+path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, old.Close()) }()
	ents, err = old.Entities(ctx, &store.EntityOptions{Backlog: 4})
	require.NoError(t, err)
	checked(old, "4")
	for n := uint64(keptBlocks + 1); n < 80; n++ {
		_, err := model.Apply(ctx, formatBlock(n))
		require.NoError(t, err)
		_, err = ents.Apply(ctx, formatBlock(n))
		require.NoError(t, err)
		same(ents, n)
	}
	same(ents, keptBlocks)
	require.NoError(t, ents.Flush(ctx))
	same(ents, store.Head)
	checked(old, "4")
}
