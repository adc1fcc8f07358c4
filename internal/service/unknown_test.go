package service_test

import (
	"context"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// TestUnknownOutcome: after a commit whose answer was lost, readers see the
// store's state, without another write before.
func TestUnknownOutcome(t *testing.T) {
	db := open(t, losing(t, "sqlite")+":"+filepath.Join(t.TempDir(), "varve.db"))
	s := start(t, db, service.Options{Poll: time.Hour, Keys: keyring(t, 1)})
	_, err := s.Put(t.Context(), put(1, "old"))
	require.NoError(t, err)
	read := func() string {
		e, err := s.Get(t.Context(), key(1), nil)
		require.NoError(t, err)
		return string(e.Content)
	}
	require.Equal(t, "old", read())
	lose.Store(true)
	defer lose.Store(false)
	_, err = s.Put(t.Context(), put(1, "new"))
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.Equal(t, "new", read())
	require.EqualValues(t, 2, s.Head())
}

// lose has commits succeed and return an unknown outcome.
var lose atomic.Bool

// losing registers an engine whose answers can get lost, and returns its name.
func losing(t *testing.T, name string) string {
	t.Helper()
	d, ok := driver.Lookup(name)
	require.True(t, ok)
	open := d.Open
	d.Name = "losing+" + name
	d.Open = func(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
		e, err := open(ctx, u, opts)
		return losingEngine{e}, err
	}
	if _, known := driver.Lookup(d.Name); !known {
		driver.Register(d)
	}
	return d.Name
}

type losingEngine struct{ driver.Engine }

func (e losingEngine) Begin(ctx context.Context) (driver.Tx, error) {
	tx, err := e.Engine.Begin(ctx)
	return losingTx{tx}, err
}

type losingTx struct{ driver.Tx }

func (tx losingTx) Commit(ctx context.Context) error {
	err := tx.Tx.Commit(ctx)
	if err == nil && lose.Load() {
		err = driver.ErrUnknownOutcome
	}
	return err
}
