package compact_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/store/entity"
)

// TestProcesses checks that processes may take turns, each with what it remembers, that
// some of them are killed, and that some of their transactions are rolled back.
func TestProcesses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newRig(t, compact.Options{
			Backlog: 1 << 20,
			Batch:   rapid.IntRange(1, 12).Draw(rt, "batch"),
			Steps:   rapid.IntRange(1, 4).Draw(rt, "steps"),
			Page:    64,
		})
		defer func() { require.NoError(t, b.engine.Close()) }()
		processes := make([]*compact.Layout, 3)
		for i := range processes {
			b.forget()
			processes[i] = b.layout
		}
		model := map[int]uint64{}
		for number := uint64(1); number < 25; number++ {
			b.layout = rapid.SampledFrom(processes).Draw(rt, "writer")
			b.apply(true, drawBlock(rt, number, model))
			for range rapid.IntRange(0, 4).Draw(rt, "slices") {
				i := rapid.IntRange(0, len(processes)-1).Draw(rt, "process")
				b.layout = processes[i]
				switch rapid.IntRange(0, 9).Draw(rt, "what") {
				case 0:
					b.forget()
					processes[i] = b.layout
				case 1, 2, 3:
					b.prepare()
				default:
					commit := rapid.IntRange(0, 3).Draw(rt, "committed") > 0
					b.merge(commit, rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 20)).Draw(rt, "steps done"))
				}
			}
		}
		b.drain()
		b.check()
	})
}

// TestStaleAfterKills checks that a process goes on that has planned a batch, when another
// was killed after its postings for it began to count, and a third after one more step.
func TestStaleAfterKills(t *testing.T) {
	for steps := range 12 {
		b := expiringRig(t)
		b.prepare()
		first := b.layout
		b.forget()
		for range steps {
			b.merge(true, 1)
		}
		b.forget()
		b.merge(true, 1)
		b.layout = first
		b.drain()
		require.Len(t, b.dump()["closed_versions"], 1, "after %d steps", steps)
		b.check()
		require.NoError(t, b.engine.Close())
	}
}

// TestRolledBackMerge checks that a process finds all of the log that another has written, when
// it wrote the same blocks before, merged the first of them, and was rolled back.
func TestRolledBackMerge(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{Backlog: 1, Steps: 1}) // blocks merge themselves
	defer func() { require.NoError(t, b.engine.Close()) }()
	blocks := make([]entity.Block, 2)
	for i := range blocks {
		blocks[i] = entity.Block{Number: uint64(i + 1), Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(i)}, BTL: 100}}}
	}
	first := b.layout
	b.apply(false, blocks...)
	b.opts.Backlog = 1 << 20
	b.forget()
	b.apply(true, blocks...)
	b.layout = first
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	v, err := b.layout.View(ctx, r, 2)
	require.NoError(t, err)
	n, err := v.Count(ctx, nil)
	require.NoError(t, err)
	require.EqualValues(t, len(blocks), n)
}
