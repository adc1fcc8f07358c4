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
	"github.com/varvedb/varve/store/entity"
)

func versions(list ...uint64) *service.Versions { return &service.Versions{List: list} }

var some = &service.Versions{Any: true}

// TestGuard: a write is made only of the entity that its guard wants, and a refused one
// takes no block.
func TestGuard(t *testing.T) {
	for name, cache := range map[string]int64{"cached": 0, "uncached": -1} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fresh(t), service.Options{CacheBytes: cache, Keys: keyring(t, 1)})
			_, err := s.Put(t.Context(), put(1, "is at version 1"))
			require.NoError(t, err)
			_, err = s.Put(t.Context(), put(1, "is at version 2"))
			require.NoError(t, err)
			for name, c := range map[string]struct {
				when     service.Guard
				of1, of9 bool // there is no entity 9
			}{
				"any":                   {service.Guard{Match: some}, true, false},
				"none":                  {service.Guard{NoneMatch: some}, false, true},
				"this version":          {service.Guard{Match: versions(1, 2)}, true, false},
				"an older version":      {service.Guard{Match: versions(1)}, false, false},
				"no version":            {service.Guard{Match: versions()}, false, false},
				"not this version":      {service.Guard{NoneMatch: versions(2)}, false, true},
				"not the older version": {service.Guard{NoneMatch: versions(1)}, true, true},
				"both":                  {service.Guard{Match: some, NoneMatch: versions(1)}, true, false},
			} {
				for n, allowed := range map[int]bool{1: c.of1, 9: c.of9} {
					_, err := s.Delete(t.Context(), key(n), c.when)
					if allowed && n == 9 {
						require.ErrorIs(t, err, store.ErrNotFound, "%s: of %d", name, n)
						continue
					}
					require.Equal(t, allowed, err == nil, "%s: of %d: %v", name, n, err)
					if !allowed {
						require.ErrorIs(t, err, service.ErrChanged, name)
						continue
					}
					// It is made again at version 2, as it was.
					s.Close()
					s = start(t, fresh(t), service.Options{CacheBytes: cache, Keys: keyring(t, 1)})
					_, err = s.Put(t.Context(), put(1, ""))
					require.NoError(t, err)
					_, err = s.Put(t.Context(), put(1, ""))
					require.NoError(t, err)
				}
			}
			require.Equal(t, uint64(2), s.Head(), "what is refused takes no block")
		})
	}
}

// TestGuardRace: of those who add one to what they have read, each success counts, beside
// a writer who asks for nothing and writers of the same blocks.
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

// TestGuardOfOthers: what the service remembers is not what a guard is judged by, when
// somebody else has written.
func TestGuardOfOthers(t *testing.T) {
	db := fresh(t)
	s := start(t, db, service.Options{Poll: time.Hour})
	done, err := s.Put(t.Context(), put(1, "one"))
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 7, Ops: []entity.Op{{Kind: entity.Update, Key: key(1), BTL: 100}}})
	require.NoError(t, err)
	p := put(1, "two")
	p.When.Match = versions(done.Block)
	_, err = s.Put(t.Context(), p)
	require.ErrorIs(t, err, service.ErrChanged)
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
