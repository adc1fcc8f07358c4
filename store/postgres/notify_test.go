package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// openEvents opens the events of a URL. Who polls once an hour has to be told.
func openEvents(t *testing.T, url string) *store.Events {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	evs, err := db.Events(t.Context(), &store.EventOptions{PollInterval: time.Hour})
	require.NoError(t, err)
	return evs
}

func appendOne(t *testing.T, evs *store.Events) {
	t.Helper()
	_, err := evs.Append(t.Context(), []event.Event{{Type: "made"}}, nil)
	require.NoError(t, err)
}

// listen begins to hear on an engine.
func listen(t *testing.T, e *engine) driver.Listening {
	t.Helper()
	l, err := e.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// TestListening: only commits of others that were announced are heard, of this schema.
func TestListening(t *testing.T) {
	url := pgtest.NewURL(t)
	e, other, elsewhere := openTest(t, url, nil), openTest(t, url, nil), openNew(t, nil)
	l := listen(t, e)
	announce := func(by *engine, end func(driver.Tx) error) {
		tx, err := by.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, driver.Run(t.Context(), tx, by.Announcement()))
		require.NoError(t, end(tx))
	}
	commit := func(tx driver.Tx) error { return tx.Commit(context.Background()) }
	announce(e, commit)
	announce(elsewhere, commit)
	announce(other, driver.Tx.Rollback)
	execute(t, other, createAll)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)

	l = listen(t, e)
	announce(other, commit)
	require.NoError(t, l.Wait(t.Context()))
	pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
	require.Error(t, l.Wait(t.Context()))
}

// TestListeningIsMadeAgain: a subscription whose connection is lost goes on.
func TestListeningIsMadeAgain(t *testing.T) {
	url := pgtest.NewURL(t)
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	reader, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	writer := openEvents(t, url)
	appendOne(t, writer)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listeners := func() string {
		return pgtest.Exec(t, url, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
	}
	for e, err := range reader.Subscribe(ctx, event.All(), 0) {
		require.NoError(t, err)
		if e.Position == 3 {
			break
		}
		require.Eventually(t, func() bool { return listeners() == "1" }, time.Minute, 10*time.Millisecond)
		pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
		appendOne(t, writer)
	}
	require.Eventually(t, func() bool { return listeners() == "0" }, time.Minute, 10*time.Millisecond, "nobody subscribes any more")
}

// TestListeningThroughPooler: it is refused, and subscriptions poll.
func TestListeningThroughPooler(t *testing.T) {
	e := openTest(t, startPooler(t, asPoor(t, pgtest.NewURL(t)), "transaction", 4), nil)
	_, err := e.Listen(t.Context())
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.True(t, strings.Contains(err.Error(), "pooler"), err)
}
