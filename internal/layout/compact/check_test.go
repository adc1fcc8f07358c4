package compact_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// TestCheckNames damages rows of one kind each: a check says what is wrong, and
// nothing of a store that is whole. Its history has a value that comes back to an
// entity, which stays in the postings of the past, and a key that is made twice.
func TestCheckNames(t *testing.T) {
	ctx := context.Background()
	problems := func(b *rig) (list []string) {
		r, err := b.engine.Snapshot(ctx)
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		q := &countingView{Querier: r, text: "FROM current_versions\nWHERE id >= ? AND id < ?"}
		require.NoError(t, b.layout.Check(ctx, q, q, q, false, func(problem string) bool {
			list = append(list, problem)
			return true
		}))
		if len(list) == 0 {
			require.Equal(t, 1, q.n, "readings of the versions of a store that is whole")
		}
		return list
	}
	for _, c := range []struct{ sql, want string }{
		{"", ""},
		{"UPDATE closed_versions SET data = (SELECT data FROM current_versions WHERE id = 3) WHERE id = 1 AND from_block = 2", "of a closed version is in no posting"},
		{"UPDATE current_versions SET data = (SELECT data FROM current_versions WHERE id = 3) WHERE id = 1", "its postings are not those of the current versions"},
		{"UPDATE closed_versions SET to_block = 6, expires = 6 WHERE id = 2", "begins before that of block 1 ends at 6"},
		{"UPDATE closed_versions SET to_block = 4 WHERE id = 1 AND from_block = 2", "begins before that of block 2 ends at 4"},
		{"UPDATE closed_versions SET from_block = 5 WHERE id = 1 AND from_block = 2", "it ends at block 3"},
		{"DELETE FROM closed_versions WHERE id = 1 AND from_block = 2", "between it and that of block 1 one is missing"},
		{"UPDATE closed_versions SET id = -1 WHERE id = 1 AND from_block = 2", "entity -1 is there"},
		{"UPDATE entity_keys SET hash = hash + 1 WHERE id = 3", "its key does not lead to number 3"},
		{"DELETE FROM entity_keys WHERE id = 1", "its key does not lead to number 1"},
		{"UPDATE current_versions SET entity_key = (SELECT entity_key FROM current_versions WHERE id = 3) WHERE id = 1", "its key does not lead to number 1"},
		{"DELETE FROM contents WHERE no = 1", "its payload 1 is missing"},
	} {
		t.Run(c.want, func(t *testing.T) {
			b := newRig(t, compact.Options{})
			defer func() { require.NoError(t, b.engine.Close()) }()
			op := func(kind entity.Kind, key byte, value string) entity.Op {
				o := entity.Op{Kind: kind, Key: entity.Key{key}, OpIndex: uint32(key)}
				if kind != entity.Delete {
					o.BTL, o.Content, o.StringAttributes = 100, []byte{key}, map[string]string{"a": value}
				}
				return o
			}
			for i, ops := range [][]entity.Op{
				{op(entity.Create, 1, "x"), op(entity.Create, 2, "x"), op(entity.Create, 3, "z")},
				{op(entity.Update, 1, "y"), op(entity.Delete, 2, "")},
				{op(entity.Update, 1, "x")},
				{op(entity.Create, 2, "x")},
			} {
				b.apply(true, entity.Block{Number: uint64(i + 1), Ops: ops})
				b.drain()
			}
			if c.sql == "" {
				require.Empty(t, problems(b))
				return
			}
			b.write(true, func(tx driver.Tx) error {
				n, err := tx.Exec(ctx, c.sql)
				require.Equal(t, int64(1), n)
				return err
			})
			require.Contains(t, strings.Join(problems(b), "\n"), c.want)
		})
	}
}

// countingView counts the statements with a text.
type countingView struct {
	driver.Querier
	text string
	n    int
}

func (q *countingView) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if strings.Contains(text, q.text) {
		q.n++
	}
	return q.Querier.Query(ctx, text, args...)
}
