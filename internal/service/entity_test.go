package service_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

func TestPutGetDelete(t *testing.T) {
	ctx := t.Context()
	owner, other := entity.Address{1}, entity.Address{2}
	s := start(t, fresh(t), service.Options{Keys: keyring(t, 1), Owner: owner})
	_, err := s.Get(ctx, key(1), nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Delete(ctx, key(1), service.Guard{})
	require.ErrorIs(t, err, store.ErrNotFound)

	done, err := s.Put(ctx, put(1, "one"))
	require.NoError(t, err)
	require.Equal(t, service.Written{Block: 1, Created: true, Expiration: entity.MaxBlock}, done)
	e, err := s.Get(ctx, key(1), nil)
	require.NoError(t, err)
	require.Equal(t, "one", string(e.Content))
	require.Equal(t, owner, e.Owner)

	p := put(1, "two")
	p.Owner, p.Lifetime = &other, new(uint64(10))
	done, err = s.Put(ctx, p)
	require.NoError(t, err)
	require.Equal(t, service.Written{Block: 2, Expiration: 12}, done)
	_, err = s.Put(ctx, put(1, "three"))
	require.NoError(t, err)
	e, err = s.Get(ctx, key(1), nil)
	require.NoError(t, err)
	require.Equal(t, other, e.Owner, "a put without an owner keeps it")
	require.Equal(t, owner, e.Creator)
	require.Equal(t, uint64(1), e.CreatedAtBlock())

	done, err = s.Delete(ctx, key(1), service.Guard{})
	require.NoError(t, err)
	require.Equal(t, uint64(4), done.Block)
	_, err = s.Get(ctx, key(1), nil)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestLifetime(t *testing.T) {
	for name, cache := range map[string]int64{"cached": 0, "uncached": -1} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := start(t, fresh(t), service.Options{CacheBytes: cache})
			p := put(1, "short")
			p.Lifetime = new(uint64(2))
			_, err := s.Put(ctx, p) // block 1: gone at block 3
			require.NoError(t, err)
			_, err = s.Put(ctx, put(2, "x"))
			require.NoError(t, err)
			_, err = s.Get(ctx, key(1), nil)
			require.NoError(t, err)
			done, err := s.Put(ctx, p) // in block 3 there is nothing to replace
			require.NoError(t, err)
			require.Equal(t, service.Written{Block: 3, Created: true, Expiration: 5}, done)
			for range 2 {
				_, err = s.Put(ctx, put(2, "x"))
				require.NoError(t, err)
			}
			_, err = s.Get(ctx, key(1), nil)
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = s.Delete(ctx, key(1), service.Guard{})
			require.ErrorIs(t, err, store.ErrNotFound)
		})
	}
}

func TestRefusals(t *testing.T) {
	ctx := t.Context()
	s := start(t, fresh(t), service.Options{MaxPayload: 10})
	for name, c := range map[string]struct {
		change func(p *service.Put)
		want   error
	}{
		"payload too large":  {func(p *service.Put) { p.Payload = make([]byte, 11) }, service.ErrTooLarge},
		"reserved attribute": {func(p *service.Put) { p.StringAttributes = map[string]string{"$key": ""} }, store.ErrInvalid},
		"nameless attribute": {func(p *service.Put) { p.NumericAttributes = map[string]uint64{"": 1} }, store.ErrInvalid},
		"not UTF-8":          {func(p *service.Put) { p.ContentType = "\xff" }, store.ErrInvalid},
		"looks sealed":       {func(p *service.Put) { p.Payload = []byte("varvesl\x01") }, store.ErrInvalid},
	} {
		p := put(1, "payload")
		c.change(p)
		_, err := s.Put(ctx, p)
		require.ErrorIs(t, err, c.want, name)
	}
	require.Zero(t, s.Head(), "nothing was written")
	largest := put(1, "")
	largest.Payload = make([]byte, 10)
	_, err := s.Put(ctx, largest)
	require.NoError(t, err)
	_, err = service.New(ctx, fresh(t), service.Options{MaxGroup: 1 << 20})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// TestModel makes random writes and compares the cache with a second service's
// reads from the store, after each block.
func TestModel(t *testing.T) {
	keys := keyring(t, 1)
	rapid.Check(t, func(rt *rapid.T) {
		url := "sqlite:" + t.TempDir() + "/varve.db?durability=unsafe"
		db, err := store.Open(context.Background(), url, nil)
		require.NoError(rt, err)
		defer db.Close()
		s, err := service.New(context.Background(), db, service.Options{Keys: keys, Owner: entity.Address{9}})
		require.NoError(rt, err)
		defer s.Close()
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			n := rapid.IntRange(1, 8).Draw(rt, "writes")
			verdicts := make(chan error, n)
			for range n {
				k := rapid.IntRange(0, 2).Draw(rt, "key")
				if rapid.Bool().Draw(rt, "put") {
					p := put(k, rapid.StringMatching("[a-z]{0,3}").Draw(rt, "payload"))
					if n := rapid.Uint64Range(0, 4).Draw(rt, "lifetime"); n > 0 {
						p.Lifetime = &n
					}
					if rapid.Bool().Draw(rt, "owned") {
						p.Owner = &entity.Address{byte(k + 1)} // an owner is not taken away
					}
					go func() {
						_, err := s.Put(context.Background(), p)
						verdicts <- err
					}()
					continue
				}
				go func() {
					_, err := s.Delete(context.Background(), key(k), service.Guard{})
					verdicts <- err
				}()
			}
			for range n {
				if err := <-verdicts; err != nil {
					require.ErrorIs(rt, err, store.ErrNotFound)
				}
			}
			same(rt, url, s, keys)
		}
	})
}

// same compares a service's answers with the store.
func same(t require.TestingT, url string, s *service.Service, keys *seal.Keyring) {
	db, err := store.Open(context.Background(), url, &store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	plain, err := service.New(context.Background(), db, service.Options{CacheBytes: -1, Keys: keys})
	require.NoError(t, err)
	defer plain.Close()
	require.Equal(t, plain.Head(), s.Head())
	for k := range 3 {
		want, wantErr := plain.Get(context.Background(), key(k), nil)
		got, err := s.Get(context.Background(), key(k), nil)
		require.Equal(t, wantErr == nil, err == nil, "%v, %v", wantErr, err)
		require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}
