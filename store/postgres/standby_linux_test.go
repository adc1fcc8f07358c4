package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// startServerIn starts a server as a user would have one.
func startServerIn(t *testing.T, dir string) *pgembed.Server {
	t.Helper()
	server, err := pgembed.Start(t.Context(), pgembed.Config{Dir: dir, Settings: []driver.Setting{{Name: "shared_buffers", Value: "16MB"}}})
	require.NoError(t, err)
	return server
}

// startPair starts a primary and a standby that follows it, both with what fill makes.
func startPair(t *testing.T, fill func(url string)) (primary, standby *pgembed.Server) {
	t.Helper()
	dir := madeDir(t)
	primary = startServerIn(t, dir)
	fill(pgtest.URL(primary, pgembed.Database))
	require.NoError(t, primary.Stop(context.Background()))

	copied := copyDir(t, dir, filepath.Join(t.TempDir(), "standby"))
	data := filepath.Join(copied, "data")
	primary = startServerIn(t, dir)
	t.Cleanup(func() { _ = primary.Stop(context.Background()) }) // a test may have stopped it
	follow := fmt.Sprintf("primary_conninfo = 'host=%s user=%s'\n", primary.SocketDir(), pgembed.User)
	require.NoError(t, os.WriteFile(filepath.Join(data, "postgresql.auto.conf"), []byte(follow), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o600))
	standby = startServerIn(t, copied)
	t.Cleanup(func() { require.NoError(t, standby.Stop(context.Background())) })
	return primary, standby
}

// TestStandby: a standby serves reads and subscriptions, and tells how far it is behind.
func TestStandby(t *testing.T) {
	ctx := t.Context()
	open := func(url string, readOnly bool) (*store.DB, *store.Entities, *store.Events) {
		db, err := store.Open(ctx, url, &store.Options{ReadOnly: readOnly})
		require.NoError(t, err)
		ents, err := db.Entities(ctx, nil)
		require.NoError(t, err)
		evs, err := db.Events(ctx, nil)
		require.NoError(t, err)
		return db, ents, evs
	}
	add := func(ents *store.Entities, evs *store.Events, n uint64) {
		_, err := ents.Apply(ctx, entity.Block{Number: n, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 100, Content: []byte("x")}}})
		require.NoError(t, err)
		appendOne(t, evs)
	}
	primary, standby := startPair(t, func(url string) {
		db, ents, evs := open(url, false)
		add(ents, evs, 1)
		require.NoError(t, db.Close())
	})
	db, ents, evs := open(pgtest.URL(primary, pgembed.Database), false)
	defer func() { require.NoError(t, db.Close()) }()
	replica, read, heard := open(pgtest.URL(standby, pgembed.Database), true)
	defer func() { require.NoError(t, replica.Close()) }()
	add(ents, evs, 2)
	require.Eventually(t, func() bool {
		snap, err := read.At(ctx, store.Head)
		require.NoError(t, err)
		_, missing := snap.Get(ctx, entity.Key{2})
		require.NoError(t, snap.Close())
		return missing == nil
	}, time.Minute, 10*time.Millisecond)
	for e, err := range heard.Subscribe(ctx, event.All(), 0) {
		require.NoError(t, err)
		if e.Position == 2 {
			break
		}
	}
	stats, err := replica.Engine().Stats(ctx)
	require.NoError(t, err)
	require.NotNil(t, stats.ReplicaLag)
	stats, err = db.Engine().Stats(ctx)
	require.NoError(t, err)
	require.Nil(t, stats.ReplicaLag, "of a primary")
	_, err = read.Apply(ctx, entity.Block{Number: 3})
	require.ErrorIs(t, err, store.ErrReadOnly)

	// A standby that receives no log is as far behind as its last transaction
	// is old.
	require.NoError(t, primary.Stop(ctx))
	behind := func() time.Duration {
		stats, err := replica.Engine().Stats(ctx)
		require.NoError(t, err)
		return *stats.ReplicaLag
	}
	require.Eventually(t, func() bool { return behind() > 0 }, time.Minute, 10*time.Millisecond)
}

// TestUnavailable: a server that is down is called that, and found again when it is back.
func TestUnavailable(t *testing.T) {
	dir := madeDir(t)
	server := startServerIn(t, dir)
	db, err := store.Open(t.Context(), pgtest.URL(server, pgembed.Database), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Head(t.Context())
	require.NoError(t, err)
	require.NoError(t, server.Stop(t.Context()))
	for range 2 {
		_, err = ents.Head(t.Context())
		require.ErrorIs(t, err, store.ErrUnavailable)
		_, err = ents.Apply(t.Context(), entity.Block{Number: 1})
		require.ErrorIs(t, err, store.ErrUnavailable)
	}
	server = startServerIn(t, dir)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	_, err = ents.Head(t.Context())
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 1})
	require.NoError(t, err)
}
