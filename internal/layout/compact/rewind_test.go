package compact_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// rewind takes back what blocks above one did, or all with -1.
func (b *rig) rewind(commit bool, head uint64, to int64, through func(driver.Tx) driver.Tx) {
	ctx := context.Background()
	b.write(commit, func(tx driver.Tx) error {
		w, err := b.layout.Writer(ctx, through(tx))
		require.NoError(b.t, err)
		return w.Rewind(ctx, head, to)
	})
}

func same(tx driver.Tx) driver.Tx { return tx }

// versions returns the rows of all versions, but for the numbers that entities and
// payloads have, which are not given again after a rewind. To is the end of a closed one.
func (b *rig) versions() (list []string) {
	r, err := b.engine.Snapshot(context.Background())
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, r.Close()) }()
	rows, err := r.Query(context.Background(), `
		SELECT v.entity_key, v.from_block, v.to_block, v.expires, v.data, c.content
		FROM (
			SELECT entity_key, from_block, expires AS to_block, expires, data, content FROM current_versions
			UNION ALL
			SELECT entity_key, from_block, to_block, expires, data, content FROM closed_versions
		) AS v
		LEFT JOIN contents AS c ON c.no = v.content`)
	require.NoError(b.t, err)
	for rows.Next() {
		var key, data, content []byte
		var from, to, expires int64
		require.NoError(b.t, rows.Scan(&key, &from, &to, &expires, &data, &content))
		list = append(list, fmt.Sprintf("%x [%d, %d) of %d: %x %x", key, from, to, expires, data, content))
	}
	require.NoError(b.t, errors.Join(rows.Err(), rows.Close()))
	slices.Sort(list)
	return list
}

// TestRewind checks that a store that was rewound has the versions, and later makes the
// ones, of a store that never had the later blocks: whatever of them was merged, and
// whether rewinds were rolled back.
func TestRewind(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opts := compact.Options{
			Backlog: 1 << 20, // blocks merge nothing themselves
			Batch:   rapid.IntRange(1, 12).Draw(rt, "batch"),
			Steps:   rapid.IntRange(1, 4).Draw(rt, "steps"),
			Page:    64, // so that runs have several
		}
		b, never := newRig(t, opts), newRig(t, opts)
		defer func() { require.NoError(t, errors.Join(b.engine.Close(), never.engine.Close())) }()
		last := rapid.Int64Range(-1, 15).Draw(rt, "to")
		model, at := map[int]uint64{}, map[int]uint64{}
		for number := uint64(0); number < 16; number++ {
			block := drawBlock(rt, number, model)
			b.apply(true, block)
			if int64(number) <= last {
				never.apply(true, block)
				at = maps.Clone(model)
			}
			switch rapid.IntRange(0, 9).Draw(rt, "between") {
			case 0:
				b.forget()
			case 1, 2:
				b.prepare()
			case 3, 4:
				b.merge(true, rapid.IntRange(1, 20).Draw(rt, "steps done"))
			case 5:
				b.rewind(false, number, rapid.Int64Range(-1, int64(number)).Draw(rt, "lost"), same)
			}
		}
		b.rewind(true, 15, last, same)
		b.check()
		b.drain()
		never.drain()
		compare := func(when string) {
			if diff := cmp.Diff(never.versions(), b.versions()); diff != "" {
				rt.Fatalf("%s the versions differ (- never had them, + rewound): %s", when, diff)
			}
		}
		compare("rewound,")
		for number := uint64(last + 1); number < 20; number++ {
			block := drawBlock(rt, number, at)
			b.apply(true, block)
			never.apply(true, block)
			if rapid.IntRange(0, 4).Draw(rt, "merge") == 0 {
				b.drain()
			}
		}
		b.drain()
		never.drain()
		b.check()
		compare("some blocks on,")
	})
}

// plannedTx notes what statements read from end to end.
type plannedTx struct {
	driver.Tx
	scans map[string]string // what they say, by what they read
}

// see notes the scans of a statement. Insertions of rows have none.
func (tx plannedTx) see(ctx context.Context, text string, args []any) error {
	if strings.HasPrefix(text, "INSERT") {
		return nil
	}
	steps, err := explain(ctx, tx.Tx, text, args)
	for _, step := range steps {
		if what, ok := strings.CutPrefix(step, "SCAN "); ok {
			tx.scans[what] = text
		}
	}
	return err
}

func (tx plannedTx) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if err := tx.see(ctx, text, args); err != nil {
		return nil, err
	}
	return tx.Tx.Query(ctx, text, args...)
}

func (tx plannedTx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	if err := tx.see(ctx, text, args); err != nil {
		return 0, err
	}
	return tx.Tx.Exec(ctx, text, args...)
}

// TestRewindReadsWhatItTakesBack: a rewind looks for what it changes by indexes and
// postings alone, so it does not become slower as the store grows.
func TestRewindReadsWhatItTakesBack(t *testing.T) {
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	for n := uint64(1); n <= 40; n++ {
		ops := []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 3 + n%4*100, Content: []byte{byte(n)}}} // some run out
		switch n % 4 {
		case 0:
			ops = append(ops, entity.Op{Kind: entity.Update, Key: entity.Key{byte(n - 1)}, OpIndex: 1, BTL: 100})
		case 2:
			ops = append(ops, entity.Op{Kind: entity.Delete, Key: entity.Key{byte(n - 1)}, OpIndex: 1})
		}
		b.apply(true, entity.Block{Number: n, Ops: ops})
		b.drain()
	}
	before := len(b.versions())
	scans := map[string]string{}
	b.rewind(true, 40, 30, func(tx driver.Tx) driver.Tx { return plannedTx{tx, scans} })
	delete(scans, "progress") // one row
	require.Empty(t, scans)
	require.Less(t, len(b.versions()), before)
	b.check()
}

// TestRewindKeepsContents: a payload that a version took over from one before it stays when the
// blocks that took it over are rewound, whether the version before it is merged or in the log.
func TestRewindKeepsContents(t *testing.T) {
	for _, merged := range []bool{true, false} {
		t.Run(fmt.Sprintf("merged=%t", merged), func(t *testing.T) {
			ctx := context.Background()
			b := newRig(t, compact.Options{})
			defer func() { require.NoError(t, b.engine.Close()) }()
			payload := []byte("the payload")
			key := entity.Key{1}
			b.apply(true, entity.Block{Number: 1, Ops: []entity.Op{{Kind: entity.Create, Key: key, BTL: 100, Content: payload}}})
			if merged {
				b.drain()
			}
			b.apply(true, entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.ExtendBTL, Key: key, BTL: 200}}})
			b.apply(true, entity.Block{Number: 3, Ops: []entity.Op{{Kind: entity.ChangeOwner, Key: key, Owner: entity.Address{1}}}})
			for _, to := range []int64{2, 1} {
				b.rewind(true, uint64(to+1), to, same)
				r, err := b.engine.Snapshot(ctx)
				require.NoError(t, err)
				v, err := b.layout.View(ctx, r, uint64(to))
				require.NoError(t, err)
				e, err := v.Get(ctx, key)
				require.NoError(t, err)
				require.Equal(t, payload, e.Content, "at block %d", to)
				require.NoError(t, r.Close())
			}
			b.check()
		})
	}
}
