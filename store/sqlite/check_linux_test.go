package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestVerifyWrites: a check sorts a history without its payloads, which would all
// go through a temporary file.
func TestVerifyWrites(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv"} {
		t.Run(layout, func(t *testing.T) {
			url := "sqlite://" + filepath.Join(t.TempDir(), "x.db")
			open := func() (*store.DB, *store.Entities) {
				db, err := store.Open(t.Context(), url, &store.Options{Memory: 32 << 20})
				require.NoError(t, err)
				ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: layout})
				require.NoError(t, err)
				return db, ents
			}
			db, ents := open()
			const keys, blocks, size = 200, 20, 10_000
			for number := uint64(1); number <= blocks; number++ {
				block := entity.Block{Number: number}
				for i := range uint32(keys) {
					op := entity.Op{Kind: entity.Update, OpIndex: i, Key: entity.Key{byte(i)}, BTL: 1000, Content: make([]byte, size)}
					copy(op.Content, fmt.Sprint(number, " ", i))
					if number == 1 {
						op.Kind = entity.Create
					}
					block.Ops = append(block.Ops, op)
				}
				_, err := ents.Apply(t.Context(), block)
				require.NoError(t, err)
			}
			require.NoError(t, ents.Flush(t.Context()))
			require.NoError(t, db.Close()) // which copies the log
			db, ents = open()
			defer func() { require.NoError(t, db.Close()) }()
			before := written(t)
			report, err := ents.Verify(t.Context())
			require.NoError(t, err)
			require.True(t, report.Digest)
			require.Less(t, written(t)-before, keys*blocks*size/4)
		})
	}
}

// written is the bytes that this process has written to files.
func written(t *testing.T) (n int) {
	text, err := os.ReadFile("/proc/self/io")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "wchar: ")
	_, err = fmt.Sscan(after, &n)
	require.NoError(t, err)
	return n
}
