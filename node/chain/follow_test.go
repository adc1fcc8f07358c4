package chain_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

var blockCount = flag.Int("varve.blocks", 150, "random blocks that TestFollowReorganisations lets a chain make")

func open(t testing.TB, url string) *store.Entities {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	return ents
}

func newURL(t testing.TB, layout string) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "follow.db") + "?durability=unsafe&readers=6&layout=" + layout
}

// requireFollowed compares a store with one that was fed with the final chain only.
func requireFollowed(t testing.TB, c *chaintest.Chain, ents *store.Entities) {
	t.Helper()
	fed := open(t, newURL(t, ents.Layout()))
	for _, b := range c.Blocks() {
		_, err := fed.Apply(t.Context(), b)
		require.NoError(t, err)
		want, err := fed.HeaderAt(t.Context(), b.Number)
		require.NoError(t, err)
		got, err := ents.HeaderAt(t.Context(), b.Number)
		require.NoError(t, err)
		require.Equal(t, want, got, "block %d", b.Number)
	}
	want, err := fed.Summary(t.Context())
	require.NoError(t, err)
	got, err := ents.Summary(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{want.Head, want.Digest, want.Blocks, want.Live}, []any{got.Head, got.Digest, got.Blocks, got.Live})
	if ents.Temporal() {
		_, err = ents.Verify(t.Context())
		require.NoError(t, err)
	}
}

// TestFollowReorganisations: while a chain grows and reorganises 1 to 64 blocks deep the store
// follows, and in the end it is that of the final chain.
func TestFollowReorganisations(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv"} {
		t.Run(layout, func(t *testing.T) {
			seed := rand.Uint64()
			t.Log("seed", seed)
			rng := rand.New(rand.NewPCG(seed, 1))
			c := chaintest.New(1337, seed)
			ents := open(t, newURL(t, layout))
			f := &chain.Follower{Client: serve(t, c), Store: ents, Interval: time.Millisecond}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- f.Run(ctx) }()
			for made, n := 0, 0; made < *blockCount; made += n {
				n = 1 + rng.IntN(12)
				if rng.IntN(3) == 0 {
					depth := 1 + rng.IntN(64)
					n += depth - 2
					c.Reorganise(depth, n)
				} else {
					c.Grow(n)
				}
				if rng.IntN(3) > 0 && n > 0 { // a chain that only lost blocks is not followed before it grows
					reach(t, c, ents, ended)
				}
			}
			reach(t, c, ents, ended)
			c.Reorganise(1+rng.IntN(64), 64) // at least one of blocks that the store has
			reach(t, c, ents, ended)
			stop()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.NotZero(t, f.Status().Reorgs)
			requireFollowed(t, c, ents)
		})
	}
}

// reach waits until the store has the chain's last block.
func reach(t *testing.T, c *chaintest.Chain, ents *store.Entities, failed <-chan error) {
	t.Helper()
	last := c.Blocks()[c.Last()]
	require.Eventually(t, func() bool {
		select {
		case err := <-failed:
			require.NoError(t, err)
		default:
		}
		head, err := ents.Head(t.Context())
		require.NoError(t, err)
		return head.Hash == last.Hash
	}, time.Minute, time.Millisecond)
}

// TestFollowAgain: a follower that ends goes on where it was.
func TestFollowAgain(t *testing.T) {
	c := chaintest.New(1337, 7)
	c.Grow(120)
	url := newURL(t, "compact")
	ents := open(t, url)
	for _, until := range []uint64{0, 1, 30, 31, 100} {
		f := &chain.Follower{Client: serve(t, c), Store: ents, Until: max(until, 1)}
		require.NoError(t, f.Run(t.Context()))
		require.Equal(t, max(until, 1), f.Status().Store)
		require.Equal(t, uint64(120), f.Status().Chain)
	}
	c.Reorganise(64, 70)
	f := &chain.Follower{Client: serve(t, c), Store: ents, Once: true}
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, chain.Status{
		Store: 126, Chain: 126, Blocks: 70, Changes: f.Status().Changes, Reorgs: 1, Rewound: 100 - 56,
		Heard: f.Status().Heard,
	}, f.Status())
	requireFollowed(t, c, ents)
	known, ok, err := ents.Chain(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, store.Chain{ID: 1337, Genesis: c.Genesis()}, known)
}

// TestFollowSameHeight: a last block that is replaced by one of its number is noticed.
func TestFollowSameHeight(t *testing.T) {
	c := chaintest.New(1337, 8)
	c.Grow(20)
	ents := open(t, newURL(t, "arkiv"))
	f := &chain.Follower{Client: serve(t, c), Store: ents, Once: true}
	require.NoError(t, f.Run(t.Context()))
	c.Reorganise(3, 3)
	require.NoError(t, f.Run(t.Context()))
	requireFollowed(t, c, ents)
	c.Reorganise(5, 2)
	require.NoError(t, f.Run(t.Context()), "a shorter chain")
	held, err := ents.Head(t.Context())
	require.NoError(t, err)
	require.Less(t, held.Number, uint64(20), "its last block is compared with the one of that number, and not with the head")
	c.Grow(4)
	require.NoError(t, f.Run(t.Context()))
	requireFollowed(t, c, ents)
}

// TestFollowLagging: several execution clients may be behind one address. One
// that lacks the last block which another has announced is no reorganisation.
func TestFollowLagging(t *testing.T) {
	c := &spoiled{Chain: chaintest.New(1337, 8)}
	c.Grow(20)
	f := &chain.Follower{Client: serve(t, c), Store: open(t, newURL(t, "arkiv")), Once: true}
	require.NoError(t, f.Run(t.Context()))
	c.spoil(func(n int) fault {
		if n != 3 { // after the chain, its block 0 and the number of its last block
			return nil
		}
		return results(func(map[string]any) any { return nil })
	})
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, 4, c.asked())
	require.Zero(t, f.Status().Reorgs)
}

// TestFollowGap: a store may lack blocks of the chain. The block below such a gap
// does not speak for the blocks in it, so that a reorganisation that reaches the
// gap needs a caller who adopts them.
func TestFollowGap(t *testing.T) {
	c := chaintest.New(1337, 8)
	c.Grow(20)
	ents := open(t, newURL(t, "arkiv"))
	for _, b := range c.Blocks() {
		if b.Number >= 5 && b.Number <= 12 {
			continue
		}
		b.Ops = nil
		_, err := ents.Apply(t.Context(), b)
		require.NoError(t, err)
	}
	f := &chain.Follower{Client: serve(t, c), Store: ents, Once: true}
	require.NoError(t, f.Run(t.Context()))
	c.Reorganise(8, 8) // from block 13 on
	err := f.Run(t.Context())
	require.ErrorIs(t, err, chain.ErrOtherChain)
	require.ErrorContains(t, err, "does not know the hash of block 5")
}

func TestFollowOtherChain(t *testing.T) {
	ours, otherID, otherGenesis := chaintest.New(1, 1), chaintest.New(2, 1), chaintest.New(1, 2)
	ents := open(t, newURL(t, "compact"))
	for _, c := range []*chaintest.Chain{ours, otherID, otherGenesis} {
		c.Grow(5)
		f := &chain.Follower{Client: serve(t, c), Store: ents, Once: true}
		err := f.Run(t.Context())
		if c == ours {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, chain.ErrOtherChain)
		require.Zero(t, f.Status().Blocks)
	}
	requireFollowed(t, ours, ents)

	for _, c := range []*chaintest.Chain{ours, otherGenesis} {
		copied := open(t, newURL(t, "compact"))
		_, err := copied.Import(t.Context(), ents.History(t.Context()), nil)
		require.NoError(t, err)
		f := &chain.Follower{Client: serve(t, c), Store: copied, Once: true, Adopt: c != ours}
		if err := f.Run(t.Context()); c != ours {
			require.ErrorIs(t, err, chain.ErrOtherChain, "block 0 tells")
			continue
		}
		require.NoError(t, err)
		ours.Grow(5)
		require.NoError(t, f.Run(t.Context()))
		requireFollowed(t, ours, copied)
	}
	f := &chain.Follower{Client: serve(t, ours), Store: ents, Once: true}
	require.NoError(t, f.Run(t.Context()))
}

// TestFollowTooDeep: a store that cannot be rewound far enough says so, and is left as it is.
func TestFollowTooDeep(t *testing.T) {
	for layout, prepare := range map[string]func(*store.Entities) error{
		"compact": func(ents *store.Entities) error { return ents.Prune(t.Context(), 35) },
		"simple":  func(*store.Entities) error { return nil },
	} {
		t.Run(layout, func(t *testing.T) {
			c := chaintest.New(1337, 9)
			c.Grow(40)
			ents := open(t, newURL(t, layout))
			f := &chain.Follower{Client: serve(t, c), Store: ents, Once: true}
			require.NoError(t, f.Run(t.Context()))
			require.NoError(t, prepare(ents))
			before, err := ents.Head(t.Context())
			require.NoError(t, err)
			c.Reorganise(6, 10)
			require.ErrorIs(t, f.Run(t.Context()), chain.ErrTooDeep)
			after, err := ents.Head(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// TestFollowMalformed: a transaction that succeeded and cannot be read ends following at
// the block before.
func TestFollowMalformed(t *testing.T) {
	c := &spoiled{Chain: chaintest.New(1337, 11)}
	c.Grow(100)
	bad := 60 + slices.IndexFunc(c.Blocks()[60:], func(b entity.Block) bool {
		return slices.ContainsFunc(b.Ops, func(op entity.Op) bool { return op.Kind != entity.Expire })
	})
	c.spoil(func(int) fault {
		return results(func(block map[string]any) any {
			if block["number"] == fmt.Sprintf("0x%x", bad) {
				for _, tx := range block["transactions"].([]any) {
					tx.(map[string]any)["input"] = "0x6e6f"
				}
			}
			return block
		})
	})
	ents := open(t, newURL(t, "compact"))
	f := &chain.Follower{Client: serve(t, c), Store: ents, Once: true}
	for range 2 {
		require.ErrorIs(t, f.Run(t.Context()), chain.ErrCompression)
		head, err := ents.Head(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, bad-1, head.Number)
	}
}

func TestFollowRefusesAddingExtensions(t *testing.T) {
	db, err := store.Open(t.Context(), newURL(t, "compact"), nil)
	require.NoError(t, err)
	defer db.Close()
	ents, err := db.Entities(t.Context(), &store.EntityOptions{ExtendAdds: true})
	require.NoError(t, err)
	f := &chain.Follower{Client: serve(t, chaintest.New(1, 1)), Store: ents, Once: true}
	require.ErrorIs(t, f.Run(t.Context()), store.ErrUnsupported)
}
