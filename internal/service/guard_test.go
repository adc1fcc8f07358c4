package service_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
)

func versions(list ...uint64) *service.Versions { return &service.Versions{List: list} }

var some = &service.Versions{Any: true}

// TestGuard: a write is made only of the entity that its guard wants, and a refused one
// takes no block.
func TestGuard(t *testing.T) {
	for name, cache := range map[string]int64{"cached": 0, "uncached": -1} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fresh(t), service.Options{CacheBytes: cache, Keys: keyring(t, 1)})
			for name, c := range map[string]struct {
				when        func(old, now uint64) service.Guard
				there, none bool // whether it lets by an entity, and where there is none
			}{
				"any":                   {func(_, _ uint64) service.Guard { return service.Guard{Match: some} }, true, false},
				"none":                  {func(_, _ uint64) service.Guard { return service.Guard{NoneMatch: some} }, false, true},
				"this version":          {func(old, now uint64) service.Guard { return service.Guard{Match: versions(old, now)} }, true, false},
				"an older version":      {func(old, _ uint64) service.Guard { return service.Guard{Match: versions(old)} }, false, false},
				"no version":            {func(_, _ uint64) service.Guard { return service.Guard{Match: versions()} }, false, false},
				"not this version":      {func(_, now uint64) service.Guard { return service.Guard{NoneMatch: versions(now)} }, false, true},
				"not the older version": {func(old, _ uint64) service.Guard { return service.Guard{NoneMatch: versions(old)} }, true, true},
				"both":                  {func(old, _ uint64) service.Guard { return service.Guard{Match: some, NoneMatch: versions(old)} }, true, false},
			} {
				old, err := s.Put(t.Context(), put(1, "old"))
				require.NoError(t, err)
				now, err := s.Put(t.Context(), put(1, "new"))
				require.NoError(t, err)
				when := c.when(old.Block, now.Block)
				for n, want := range map[int]error{1: nil, 9: store.ErrNotFound} { // there is no entity 9
					if n == 1 && !c.there || n == 9 && !c.none {
						want = service.ErrChanged
					}
					done, err := s.Delete(t.Context(), key(n), when)
					require.ErrorIs(t, err, want, "%s: of %d", name, n)
					require.Equal(t, now.Block+min(done.Block, 1), s.Head(), "what is refused takes no block")
					now.Block = s.Head()
				}
			}
		})
	}
}

// TestGuardRace: of clients that add one to the value that they read, each
// success counts, while another client writes without a guard and others share
// the blocks.
func TestGuardRace(t *testing.T) {
	s := start(t, fresh(t), service.Options{Keys: keyring(t, 1)})
	_, err := s.Put(t.Context(), put(1, "0"))
	require.NoError(t, err)
	var added, refused atomic.Int64
	var adders, free sync.WaitGroup
	var stop atomic.Bool
	free.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := s.Put(context.Background(), put(2+i%3, "free")); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 8 {
		adders.Go(func() {
			for range 25 {
				e, err := s.Get(context.Background(), key(1), nil)
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(e.Content))
				runtime.Gosched()
				p := put(1, strconv.Itoa(n+1))
				p.When.Match = versions(service.VersionOf(e))
				switch _, err := s.Put(context.Background(), p); {
				case err == nil:
					added.Add(1)
				case errors.Is(err, service.ErrChanged):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	adders.Wait()
	stop.Store(true)
	free.Wait()
	e, err := s.Get(t.Context(), key(1), nil)
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(added.Load(), 10), string(e.Content))
	require.NotZero(t, refused.Load(), "none came between: the test shows nothing")
}

// TestReplaced: of two writes of a key in one block only the later is told that what
// it wrote is there.
func TestReplaced(t *testing.T) {
	s := start(t, fresh(t), service.Options{Window: 200 * time.Millisecond})
	var list [2]service.Written
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { list[i], _ = s.Put(context.Background(), put(1, strconv.Itoa(i))) })
	}
	wg.Wait()
	require.Equal(t, list[0].Block, list[1].Block)
	require.NotEqual(t, list[0].Replaced, list[1].Replaced)
	require.Equal(t, list[0].Created, list[0].Replaced, "the first")
}
