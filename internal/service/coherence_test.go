package service_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/varvedb/varve/store/event"
)

// TestCoherence: no reader sees an entity older than the last acknowledged
// write before the read began, while the cache is so small that entries come
// and go.
func TestCoherence(t *testing.T) {
	const keys, readers, writes = 4, 3, 100
	for name, cache := range map[string]int64{"small": 2500, "large": 0, "none": -1} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fresh(t), service.Options{CacheBytes: cache, Keys: keyring(t, 1)})
			var acknowledged [keys]atomic.Int64 // version, or the version and a half of a delete
			var stop atomic.Bool
			var read, write sync.WaitGroup
			failed := make(chan error, readers+keys)
			for k := range keys {
				write.Go(func() {
					for v := 1; v <= writes; v++ {
						if err := writeVersion(s, k, v); err != nil {
							failed <- err
							return
						}
						acknowledged[k].Store(int64(v))
					}
				})
			}
			for r := range readers {
				read.Go(func() {
					for i := r; !stop.Load(); i++ {
						k := i % keys
						runtime.Gosched() // to the writers, whom spinning readers would starve
						before := acknowledged[k].Load()
						if err := readVersion(s, k, before); err != nil {
							failed <- err
							return
						}
					}
				})
			}
			write.Wait()
			stop.Store(true)
			read.Wait()
			select {
			case err := <-failed:
				t.Fatal(err)
			default:
			}
		})
	}
}

// writeVersion makes every fifth version a delete.
func writeVersion(s *service.Service, k, v int) (err error) {
	if v%5 == 0 {
		_, err = s.Delete(context.Background(), key(k), service.Guard{})
	} else {
		_, err = s.Put(context.Background(), put(k, strconv.Itoa(v)))
	}
	return err
}

// readVersion checks that the entity that is read is not older than a version.
// A deleted entity may be so because of any later version that is a delete.
func readVersion(s *service.Service, k int, before int64) error {
	e, err := s.Get(context.Background(), key(k), nil)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	v, err := strconv.ParseInt(string(e.Content), 10, 64)
	if err != nil {
		return err
	}
	if v < before {
		return fmt.Errorf("entity %d: version %d was acknowledged before version %d was read", k, before, v)
	}
	return nil
}

// TestGroupCommit: writes that come together share blocks; each gets its own
// verdict, and none fails for another's fault.
func TestGroupCommit(t *testing.T) {
	s := start(t, fresh(t), service.Options{Window: 200 * time.Millisecond, Keys: keyring(t, 1)})
	const n = 40
	var wg sync.WaitGroup
	verdicts := make([]error, n)
	blocks := make([]uint64, n)
	for i := range n {
		wg.Go(func() {
			var done service.Written
			switch i % 4 {
			case 0: // a key that does not exist
				done, verdicts[i] = s.Delete(context.Background(), key(1000+i), service.Guard{})
			case 1: // one key, many times
				done, verdicts[i] = s.Put(context.Background(), put(0, strconv.Itoa(i)))
			case 2:
				done, verdicts[i] = s.Put(context.Background(), put(i, "x"))
			case 3: // given up before its block
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				done, verdicts[i] = s.Put(ctx, put(i, "y"))
			}
			blocks[i] = done.Block
		})
	}
	wg.Wait()
	for i := range n {
		switch i % 4 {
		case 0:
			require.ErrorIs(t, verdicts[i], store.ErrNotFound)
		case 1, 2:
			require.NoError(t, verdicts[i])
		case 3:
			require.ErrorIs(t, verdicts[i], context.Canceled)
			_, err := s.Get(t.Context(), key(i), nil)
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	}
	require.Less(t, s.Head(), uint64(n/2), "they shared blocks")
	e, err := s.Get(t.Context(), key(0), nil)
	require.NoError(t, err)
	require.NotEmpty(t, e.Content)
}

// TestClose: accepted writes are committed, later ones are refused.
func TestClose(t *testing.T) {
	db := fresh(t)
	s := start(t, db, service.Options{Window: time.Second, MaxGroup: 64})
	var wg sync.WaitGroup
	var stored atomic.Int64
	for i := range 16 {
		wg.Go(func() {
			_, err := s.Put(context.Background(), put(i, "x"))
			switch {
			case err == nil:
				stored.Add(1)
			case !errors.Is(err, service.ErrClosing):
				t.Error(err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // for some of them to be queued; all verdicts are right in any case
	s.Close()
	wg.Wait()
	_, err := s.Put(t.Context(), put(99, "x"))
	require.ErrorIs(t, err, service.ErrClosing)
	_, err = s.Events().Append(t.Context(), []event.Event{{Type: "A"}}, nil)
	require.ErrorIs(t, err, service.ErrClosing)
	require.ErrorIs(t, s.Ready(t.Context()), service.ErrClosing)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	snap, err := ents.At(t.Context(), store.Head)
	require.NoError(t, err)
	defer snap.Close()
	count, err := snap.Count(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, uint64(stored.Load()), count)
}

// TestSecondWriter: another writer's block is not lost, and neither is the
// service's own write, whose guard is judged by the state then.
func TestSecondWriter(t *testing.T) {
	db := fresh(t)
	s := start(t, db, service.Options{Poll: time.Hour})
	done, err := s.Put(t.Context(), put(1, "one"))
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 7, Ops: []entity.Op{
		{Kind: entity.Delete, Key: key(1)}, {Kind: entity.Create, Key: key(2), BTL: 100, OpIndex: 1},
	}})
	require.NoError(t, err)
	p := put(1, "two")
	p.When.Match = versions(done.Block)
	_, err = s.Put(t.Context(), p)
	require.ErrorIs(t, err, service.ErrChanged)
	done, err = s.Put(t.Context(), put(1, "two"))
	require.NoError(t, err)
	require.Equal(t, service.Written{Block: 8, Created: true, Expiration: entity.MaxBlock}, done)
	_, err = s.Get(t.Context(), key(2), nil)
	require.NoError(t, err)
}
