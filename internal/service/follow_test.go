package service_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// node is a store that a chain feeds, through a separate handle, as another
// process would.
type node struct {
	url  string
	ents *store.Entities
}

func newNode(t testing.TB, layout string) *node {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "node.db") + "?durability=unsafe&readers=8"
	ents, err := open(t, url).Entities(t.Context(), &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	return &node{url, ents}
}

// apply sets every key to a value in one block.
func (n *node) apply(t testing.TB, block uint64, value string, keys ...int) {
	t.Helper()
	require.NoError(t, n.try(block, value, keys...))
}

func (n *node) try(block uint64, value string, keys ...int) error {
	b := entity.Block{Number: block}
	for i, k := range keys {
		b.Ops = append(b.Ops,
			entity.Op{Kind: entity.Expire, Key: key(k), TxIndex: uint32(i)},
			entity.Op{Kind: entity.Create, Key: key(k), BTL: entity.MaxBlock, Content: []byte(value), TxIndex: uint32(i), OpIndex: 1})
		if block == 1 {
			b.Ops = append(b.Ops[:len(b.Ops)-2], b.Ops[len(b.Ops)-1])
		}
	}
	_, err := n.ents.Apply(context.Background(), b)
	return err
}

func (n *node) serve(t testing.TB, o service.Options) *service.Service {
	t.Helper()
	return start(t, open(t, n.url+"&read_only=true"), o)
}

func value(t testing.TB, s *service.Service, k int) string {
	t.Helper()
	e, err := s.Get(t.Context(), key(k), nil)
	require.NoError(t, err)
	return string(e.Content)
}

// TestReadOnly: a service over a node's store, which has no events, follows it
// over new blocks and rewinds and writes nothing.
func TestReadOnly(t *testing.T) {
	for _, layout := range []string{"arkiv", "compact"} {
		t.Run(layout, func(t *testing.T) {
			n := newNode(t, layout)
			n.apply(t, 1, "one", 1, 2)
			s := n.serve(t, service.Options{Poll: time.Millisecond})
			require.True(t, s.ReadOnly())
			require.Equal(t, "one", value(t, s, 1))
			require.Equal(t, "one", value(t, s, 1), "from the cache")

			_, err := s.Put(t.Context(), put(1, "x"))
			require.ErrorIs(t, err, service.ErrReadOnly)
			_, err = s.Delete(t.Context(), key(1), service.Guard{})
			require.ErrorIs(t, err, service.ErrReadOnly)
			_, err = s.Events().Append(t.Context(), []event.Event{{Type: "A"}}, nil)
			require.ErrorIs(t, err, service.ErrNoEvents)
			_, err = open(t, n.url).Events(t.Context(), nil)
			require.NoError(t, err)
			_, err = n.serve(t, service.Options{}).Events().Append(t.Context(), []event.Event{{Type: "A"}}, nil)
			require.ErrorIs(t, err, service.ErrReadOnly, "where there are events, an append is refused as a write is")

			follows := func(want string) {
				t.Helper()
				require.Eventually(t, func() bool { return value(t, s, 1) == want }, 10*time.Second, time.Millisecond)
			}
			n.apply(t, 2, "two", 1, 2)
			follows("two")
			require.Equal(t, uint64(2), s.Head())
			require.NoError(t, n.ents.Rewind(t.Context(), 1))
			n.apply(t, 2, "other", 1, 2) // the same number, another block
			follows("other")
			require.NoError(t, n.ents.Rewind(t.Context(), 1))
			follows("one")
			require.NoError(t, s.Ready(t.Context()))
			head, err := n.ents.Head(t.Context())
			require.NoError(t, err)
			require.Equal(t, uint64(1), head.Number, "the service wrote nothing")
		})
	}
}

// TestReadOnlyMonotonic: no read that begins after another one has ended
// returns an older version of any entity, from the cache or not.
func TestReadOnlyMonotonic(t *testing.T) {
	const keys, readers, blocks = 8, 4, 150
	n := newNode(t, "arkiv")
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	n.apply(t, 1, "1", all...)
	s := n.serve(t, service.Options{CacheBytes: 4 * 600, Poll: 2 * time.Millisecond})
	var seen atomic.Int64
	var stop atomic.Bool
	var reading sync.WaitGroup
	failed := make(chan error, readers)
	for r := range readers {
		reading.Go(func() {
			for i := r; !stop.Load(); i++ {
				before := seen.Load()
				if err := notOlder(s, i%keys, before, &seen); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for b := uint64(2); b <= blocks; b++ {
		n.apply(t, b, strconv.FormatUint(b, 10), all...)
	}
	stop.Store(true)
	reading.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}

func notOlder(s *service.Service, k int, before int64, seen *atomic.Int64) error {
	e, err := s.Get(context.Background(), key(k), nil)
	if err != nil {
		return err
	}
	got, err := strconv.ParseInt(string(e.Content), 10, 64)
	if err != nil {
		return err
	}
	if got < before {
		return fmt.Errorf("block %d was returned before block %d of entity %d was read", before, got, k)
	}
	for last := seen.Load(); got > last && !seen.CompareAndSwap(last, got); last = seen.Load() {
	}
	return nil
}

// TestForeignStore: a service does not write what something else has fed, unless it is told to.
func TestForeignStore(t *testing.T) {
	n := newNode(t, "arkiv")
	require.NoError(t, n.ents.SetOrigin(t.Context(), "a test's chain"))
	db := open(t, n.url)
	_, err := service.New(t.Context(), db, service.Options{})
	require.ErrorIs(t, err, store.ErrHistory)
	require.ErrorContains(t, err, "a test's chain")
	require.ErrorContains(t, err, "--read-only")

	n = newNode(t, "arkiv")
	n.apply(t, 1, "one", 1)
	db = open(t, n.url)
	_, err = service.New(t.Context(), db, service.Options{})
	require.ErrorIs(t, err, store.ErrHistory)
	head, err := n.ents.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(1), head.Number)

	s := start(t, db, service.Options{Adopt: true})
	_, err = s.Put(t.Context(), put(2, "two"))
	require.NoError(t, err)
	s.Close()
	origin, err := n.ents.Origin(t.Context())
	require.NoError(t, err)
	require.Equal(t, service.Origin, origin)
	start(t, db, service.Options{}) // it is its own now
}

// TestSecondServer: one at a time writes a store; others may read.
func TestSecondServer(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "varve.db") + "?durability=relaxed"
	s := start(t, open(t, url), service.Options{})
	_, err := s.Put(t.Context(), put(1, "one"))
	require.NoError(t, err)
	second := open(t, url)
	_, err = service.New(t.Context(), second, service.Options{})
	require.ErrorIs(t, err, store.ErrLocked)
	require.Equal(t, "one", value(t, start(t, open(t, url+"&read_only=true"), service.Options{}), 1))
	s.Close()
	s = start(t, second, service.Options{})
	require.Equal(t, "one", value(t, s, 1))
}

// TestForeignBlock: a block of a forbidden second writer is noticed without a
// write.
func TestForeignBlock(t *testing.T) {
	db := fresh(t)
	s := start(t, db, service.Options{Poll: time.Millisecond})
	_, err := s.Put(t.Context(), put(1, "one"))
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.Delete, Key: key(1)}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), key(1), nil)
		return errors.Is(err, store.ErrNotFound)
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, uint64(2), s.Head())
}
