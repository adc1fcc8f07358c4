package chain_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
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
	ents, err := db.Entities(t.Context(), store.EntityOptions{})
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

// TestFollowReorganisations: while a chain grows and reorganises 1 to 64 blocks deep and
// clients page, each page is of one block that existed, and in the end the store is that
// of the final chain.
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
			var together sync.WaitGroup
			failed := make(chan error, 4)
			together.Go(func() {
				if err := f.Run(ctx); !errors.Is(err, context.Canceled) {
					failed <- err
				}
			})
			pages := make([]int, 3)
			for i := range pages {
				rng := rand.New(rand.NewPCG(seed, uint64(10+i)))
				together.Go(func() {
					for ctx.Err() == nil || pages[i] == 0 { // on a busy machine the chain may be done first
						if err := page(t.Context(), c, ents, rng, &pages[i]); err != nil {
							failed <- err
							return
						}
					}
				})
			}
			depths := 0
			for made := 0; made < *blockCount; {
				n := 1 + rng.IntN(12)
				if rng.IntN(3) == 0 {
					depth := 1 + rng.IntN(64)
					c.Reorganise(depth, depth-2+n)
					made += max(0, depth-2+n)
					depths = max(depths, depth)
				} else {
					c.Grow(n)
					made += n
				}
				if rng.IntN(3) > 0 {
					reach(t, c, ents, failed)
				}
			}
			c.Grow(3)
			reach(t, c, ents, failed)
			stop()
			together.Wait()
			require.Empty(t, failed)
			require.NotZero(t, f.Status().Reorgs)
			t.Log(f.Status().Reorgs, "reorganisations of up to", depths, "blocks, pages", pages)
			for _, n := range pages {
				require.NotZero(t, n)
			}
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

// page reads the entities of a block in pages, each in a view of its own, and compares
// them with what the chain had after that block.
func page(ctx context.Context, c *chaintest.Chain, ents *store.Entities, rng *rand.Rand, count *int) error {
	opts := &store.QueryOptions{Limit: 1 + rng.IntN(20)}
	var live map[entity.Key]chaintest.Life
	var found int
	for {
		at := uint64(store.Head)
		if opts.After == "" && rng.IntN(2) == 0 {
			head, err := ents.Head(ctx)
			if err != nil {
				return err
			}
			at = rng.Uint64N(head.Number + 1)
		}
		full, err := onePage(ctx, c, ents, at, opts, &live, &found)
		if errors.Is(err, store.ErrBlockRange) {
			return nil // rewound between two pages
		}
		if err != nil {
			return err
		}
		*count++
		if !full {
			break
		}
	}
	if found != len(live) {
		return fmt.Errorf("pages have %d entities, their block %d", found, len(live))
	}
	return nil
}

func onePage(ctx context.Context, c *chaintest.Chain, ents *store.Entities, at uint64, opts *store.QueryOptions, live *map[entity.Key]chaintest.Life, found *int) (full bool, err error) {
	s, err := ents.At(ctx, at)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if opts.After == "" {
		shown := s.Header()
		if shown.Empty {
			return false, nil
		}
		was := false
		if *live, was = c.Live(shown.Hash); !was {
			return false, fmt.Errorf("block %d with hash %s never was", shown.Number, shown.Hash)
		}
	}
	n := 0
	var last *entity.Entity
	for e, err := range s.Query(ctx, nil, opts) {
		if err != nil {
			return false, err
		}
		want, is := (*live)[e.Key]
		if got := (chaintest.Life{Owner: e.Owner, Expires: e.Expiration, Modified: e.LastModifiedAtBlock, Payload: string(e.Content)}); !is || got != want {
			return false, fmt.Errorf("%s is %v, in its block it was %v", e.Key, got, want)
		}
		n++
		last = e
	}
	*found += n
	if n < opts.Limit {
		return false, nil
	}
	opts.After, err = s.Cursor(last, opts)
	return true, err
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
	c.Grow(4)
	require.NoError(t, f.Run(t.Context()))
	requireFollowed(t, c, ents)
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
		_, err := copied.Import(t.Context(), ents.History(t.Context()), store.LoadOptions{})
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

	fed := open(t, newURL(t, "compact"))
	for _, b := range ours.Blocks()[:3] {
		b.Hash, b.Time = entity.Hash{}, 0
		_, err := fed.Apply(t.Context(), b)
		require.NoError(t, err)
	}
	f = &chain.Follower{Client: serve(t, ours), Store: fed, Once: true}
	require.ErrorIs(t, f.Run(t.Context()), chain.ErrOtherChain)
	_, known, err := fed.Chain(t.Context())
	require.NoError(t, err)
	require.False(t, known, "nothing is recorded of a store that is refused")
	f.Adopt = true
	require.NoError(t, f.Run(t.Context()))
	head, err := fed.Head(t.Context())
	require.NoError(t, err)
	want, err := ents.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, head)
}

// TestFollowTooDeep: a store that cannot be rewound far enough says so, and is left as
// it is.
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
	ents, err := db.Entities(t.Context(), store.EntityOptions{ExtendAdds: true})
	require.NoError(t, err)
	f := &chain.Follower{Client: serve(t, chaintest.New(1, 1)), Store: ents, Once: true}
	require.ErrorIs(t, f.Run(t.Context()), store.ErrUnsupported)
}

// TestFollowGivenBlocks: blocks of any operations are told so that a follower applies them as
// they are, after a store that knows no hashes, and none before it is shown.
func TestFollowGivenBlocks(t *testing.T) {
	random := chaintest.New(1, 7)
	random.Grow(60)
	ents, want := open(t, newURL(t, "arkiv")), open(t, newURL(t, "arkiv"))
	before := entity.Block{Number: 1000, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{1}, BTL: 5000}}}
	c := chaintest.After(1, before.Number)
	for _, e := range []*store.Entities{ents, want} {
		_, err := e.Apply(t.Context(), before)
		require.NoError(t, err)
	}
	require.NoError(t, ents.SetChain(t.Context(), store.Chain{ID: 1, Genesis: c.Genesis()}))
	blocks := random.Blocks()[1:]
	for _, b := range blocks {
		given, err := c.Give(b.Ops)
		require.NoError(t, err)
		require.Len(t, given.Ops, len(b.Ops))
		_, err = want.Apply(t.Context(), given)
		require.NoError(t, err)
	}
	f := chain.Follower{Client: serve(t, c), Store: ents, Adopt: true, Once: true}
	for shown := range len(blocks) {
		require.Equal(t, before.Number+uint64(shown), c.Last())
		c.Reveal(f.Status().Store)
		if shown%20 == 0 || shown == len(blocks)-1 {
			require.NoError(t, f.Run(t.Context()))
			got, err := ents.Head(t.Context())
			require.NoError(t, err)
			head, err := want.HeaderAt(t.Context(), c.Last())
			require.NoError(t, err)
			require.Equal(t, head, got)
		}
	}
}
