package compact_test

import (
	"context"
	"encoding/binary"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// waiting returns how many keys wait.
func (b *rig) waiting() (n int64) {
	r, err := b.engine.Snapshot(context.Background())
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, r.Close()) }()
	err = driver.QueryRows(context.Background(), r, "SELECT runs FROM progress", nil, func(rows driver.Rows) error {
		var stored []byte
		require.NoError(b.t, rows.Scan(&stored))
		n, err = compact.WaitingKeys(stored)
		return err
	})
	require.NoError(b.t, err)
	return n
}

func numbered(n uint32) (key entity.Key) {
	binary.BigEndian.PutUint32(key[:], n)
	return key
}

// TestKeys checks that each entity is found by its key, and no other, at each point of
// the way of keys into their table: by the process that writes, by one that begins, and
// in a view from before; when transactions are rolled back and blocks are rewound or
// pruned. It checks that no more keys wait than the backlog allows.
func TestKeys(t *testing.T) {
	ctx := context.Background()
	dropped := 0 // how often runs were passed by the sweep
	rapid.Check(t, func(rt *rapid.T) {
		opts := compact.Options{Backlog: rapid.IntRange(1, 3).Draw(rt, "backlog"), Steps: rapid.IntRange(1, 9).Draw(rt, "steps"), Page: 64}
		b := newRig(t, opts)
		defer func() { require.NoError(t, b.engine.Close()) }()
		type made struct {
			at    uint64
			ended uint64 // 0: not yet
		}
		all := map[entity.Key]made{} // once under each key
		next, number, horizon := uint32(0), uint64(0), uint64(0)

		// found compares a get of each key, and of some that no entity has, in a view.
		found := func(when string, r driver.Reader, at uint64, all map[entity.Key]made) {
			v, err := b.layout.View(ctx, r, at)
			require.NoError(rt, err)
			for key, m := range all {
				e, err := v.Get(ctx, key)
				if m.at > at || m.ended != 0 && m.ended <= at {
					require.ErrorIs(rt, err, entity.ErrNotFound, "%s", when)
					continue
				}
				require.NoError(rt, err, "%s, entity of block %d", when, m.at)
				require.Equal(rt, key, e.Key)
				_, err = v.Get(ctx, entity.Key{key[0], key[1], key[2], key[3], 9})
				require.ErrorIs(rt, err, entity.ErrNotFound, "%s", when)
			}
		}
		ask := func(when string, at uint64) {
			r, err := b.engine.Snapshot(ctx)
			require.NoError(rt, err)
			defer func() { require.NoError(rt, r.Close()) }()
			found(when, r, at, all)
		}
		for range rapid.IntRange(5, 25).Draw(rt, "rounds") {
			number++
			block := entity.Block{Number: number}
			for i := range uint32(rapid.IntRange(1, 12).Draw(rt, "creations")) {
				next++
				block.Ops = append(block.Ops, entity.Op{Kind: entity.Create, Key: numbered(next), OpIndex: i, BTL: 1000})
			}
			for i := uint32(1); i < next; i++ {
				key := numbered(i)
				if m, ok := all[key]; ok && m.ended == 0 && len(block.Ops) < 16 && rapid.IntRange(0, 9).Draw(rt, "delete") == 0 {
					block.Ops = append(block.Ops, entity.Op{Kind: entity.Delete, Key: key, OpIndex: uint32(len(block.Ops))})
				}
			}
			writer := b.layout
			if rapid.IntRange(0, 9).Draw(rt, "lost block") == 0 {
				lost := block
				lost.Ops = lost.Ops[:1]
				b.apply(false, lost)
				if rapid.Bool().Draw(rt, "by another") {
					b.forget() // which gives the numbers of the lost runs again
				}
			}
			old, err := b.engine.Snapshot(ctx)
			require.NoError(rt, err)
			before := maps.Clone(all)
			was := b.waiting()
			b.apply(true, block)
			b.layout = writer
			for _, op := range block.Ops {
				if op.Kind == entity.Create {
					all[op.Key] = made{at: number}
				} else {
					m := all[op.Key]
					m.ended = number
					all[op.Key] = m
				}
			}
			switch rapid.IntRange(0, 5).Draw(rt, "between") {
			case 0:
				b.forget()
			case 1:
				b.prepare()
				b.merge(true, rapid.IntRange(1, 20).Draw(rt, "steps done"))
			case 2:
				b.merge(false, rapid.IntRange(1, 20).Draw(rt, "lost steps"))
			case 3:
				if back := rapid.Uint64Range(0, 3).Draw(rt, "back"); number > horizon+back {
					b.rewind(true, number, int64(number-back), same)
					number -= back
					for key, m := range all {
						if m.at > number {
							delete(all, key)
						} else if m.ended > number {
							m.ended = 0
							all[key] = m
						}
					}
				}
			case 4:
				if rapid.IntRange(0, 3).Draw(rt, "prune") == 0 {
					horizon = number
					b.write(true, func(tx driver.Tx) error {
						w, err := b.layout.Writer(ctx, tx)
						require.NoError(rt, err)
						return w.Prune(ctx, horizon)
					})
				}
			}
			found("before", old, block.Number-1, before)
			require.NoError(rt, old.Close())
			ask("by the writer", number)
			if at := number - min(number, 2); at >= horizon {
				ask("in the past", at)
			}
			first := b.layout
			b.forget()
			ask("by another", number)
			b.layout = first
			n := b.waiting()
			if n < was {
				dropped++
			}
			require.LessOrEqual(rt, n, int64(16*opts.Backlog+2*12*4), "keys that wait")
		}
		b.check()
		b.drain()
		b.check()
		ask("merged", number)
	})
	require.Greater(t, dropped, 10, "few runs were dropped")
}
