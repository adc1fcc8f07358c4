package remote

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/store/driver"
)

// handshakeLeak is what the client library leaves behind when it panics over a
// WebSocket's handshake, in TestBadSockets; see the gap late-close.
const handshakeLeak = "github.com/coder/websocket.(*Conn).timeoutLoop"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(handshakeLeak))
}

func openURL(raw string, opts driver.Options) (driver.Engine, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	return open(context.Background(), u, opts)
}

// with returns options with parameters, given as name and value in turn.
func with(params ...string) driver.Options {
	opts := driver.Options{LockTimeout: 50 * time.Millisecond, Params: map[string]string{}}
	for i := 0; i < len(params); i += 2 {
		opts.Params[params[i]] = params[i+1]
	}
	return opts
}

// mustOpen opens the database of a server and closes it when the test ends.
func mustOpen(t *testing.T, s *server, scheme string) driver.Engine {
	t.Helper()
	e, err := openURL("libsql:"+scheme+strings.TrimPrefix(s.URL, "http"), with("authToken", s.token))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func write(t *testing.T, e driver.Engine, f func(tx driver.Tx)) {
	t.Helper()
	tx, err := e.Begin(context.Background())
	require.NoError(t, err)
	defer tx.Rollback()
	f(tx)
	require.NoError(t, tx.Commit(context.Background()))
}

func mustExec(t *testing.T, tx driver.Tx, text string, args ...any) {
	t.Helper()
	_, err := tx.Exec(context.Background(), text, args...)
	require.NoError(t, err)
}

func column[T any](t *testing.T, q driver.Querier, text string, args ...any) []T {
	t.Helper()
	rows, err := q.Query(context.Background(), text, args...)
	require.NoError(t, err)
	defer rows.Close()
	var list []T
	for rows.Next() {
		var v T
		require.NoError(t, rows.Scan(&v))
		list = append(list, v)
	}
	require.NoError(t, rows.Err())
	return list
}

// bothWays runs a test over HTTP and over WebSocket.
func bothWays(t *testing.T, f func(t *testing.T, s *server, e driver.Engine)) {
	for _, scheme := range []string{"http", "ws"} {
		t.Run(scheme, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) })
			s := newServer(t)
			f(t, s, mustOpen(t, s, scheme))
		})
	}
}

func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	table := &driver.Table{Name: "t", Columns: []driver.Column{
		{Name: "k", Type: driver.Blob}, {Name: "s", Type: driver.Text}, {Name: "n", Type: driver.Uint}}}
	set := &driver.Update{Table: "t", Set: table.Columns[2], Key: table.Columns[:1]}
	uints := []uint64{0, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}
	texts := []string{"", "2020-01-01", "ä ? ' ;", strings.Repeat("x", 10000)}
	keys := [][]byte{{}, {0}, []byte("a\x00b"), bytes.Repeat([]byte{255}, 1<<16)}
	bothWays(t, func(t *testing.T, _ *server, e driver.Engine) {
		require.NotEmpty(t, e.Info().Version)
		write(t, e, func(tx driver.Tx) {
			mustExec(t, tx, "CREATE TABLE t (k BLOB PRIMARY KEY, s TEXT, n INTEGER)")
			var rows []any
			for i := range keys {
				rows = append(rows, keys[i], texts[i], uints[i])
			}
			require.NoError(t, tx.Insert(ctx, table, rows))
		})
		view, err := e.Snapshot(ctx)
		require.NoError(t, err)
		defer view.Close()
		write(t, e, func(tx driver.Tx) {
			require.NoError(t, tx.Update(ctx, set, uint64(math.MaxUint64-1), []any{keys[0], keys[2], []byte("nobody")}))
			require.Equal(t, []uint64{math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64 - 1, math.MaxUint64},
				column[uint64](t, tx, "SELECT n FROM t ORDER BY n"))
		})
		require.Equal(t, uints, column[uint64](t, view, "SELECT n FROM t ORDER BY n"), "the view is stable")
		require.Equal(t, texts, column[string](t, view, "SELECT CAST(s AS BLOB) FROM t ORDER BY k"))
		require.Equal(t, keys, column[[]byte](t, view, "SELECT k FROM t ORDER BY k"))
		require.Equal(t, []bool{true}, column[bool](t, view, "SELECT EXISTS (SELECT 1 FROM t WHERE n = ?)", uints[3]))
	})
}

func TestConflict(t *testing.T) {
	ctx := context.Background()
	bothWays(t, func(t *testing.T, _ *server, e driver.Engine) {
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (k INTEGER PRIMARY KEY)") })
		tx, err := e.Begin(ctx)
		require.NoError(t, err)
		mustExec(t, tx, "INSERT INTO t VALUES (1)")
		_, err = tx.Exec(ctx, "INSERT INTO t VALUES (?)", int64(1))
		require.ErrorIs(t, err, driver.ErrConflict)
		require.ErrorContains(t, err, "UNIQUE constraint failed: t.k")
		require.NotContains(t, err.Error(), "INSERT", "no need to repeat the statement")
		require.NoError(t, tx.Rollback())
		write(t, e, func(tx driver.Tx) {
			require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM t"))
			_, err := tx.Exec(ctx, "INSERT INTO t VALUES (?)", "a\x00b")
			require.ErrorIs(t, err, driver.ErrUnsupported)
			_, err = tx.Exec(ctx, "INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)")
			require.ErrorIs(t, err, driver.ErrUnsupported)
		})
	})
}

// TestTooLarge: a server that will not answer with so much is no damage.
func TestTooLarge(t *testing.T) {
	bothWays(t, func(t *testing.T, s *server, e driver.Engine) {
		r, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		defer r.Close()
		s.mu.Lock()
		s.before = func(string) string { return "Response is too large" }
		s.mu.Unlock()
		_, err = r.Query(t.Context(), "SELECT 1")
		s.mu.Lock()
		s.before = nil
		s.mu.Unlock()
		require.ErrorContains(t, err, "--max-response-size")
		require.NotErrorIs(t, err, driver.ErrCorrupt)
	})
}

func TestLocked(t *testing.T) {
	bothWays(t, func(t *testing.T, s *server, e driver.Engine) {
		ctx := context.Background()
		other := mustOpen(t, s, "http")
		tx, err := other.Begin(ctx)
		require.NoError(t, err)
		_, err = e.Begin(ctx)
		require.ErrorIs(t, err, driver.ErrLocked)
		require.NoError(t, tx.Rollback())
		write(t, e, func(driver.Tx) {})
	})
}

func TestSettings(t *testing.T) {
	bothWays(t, func(t *testing.T, s *server, e driver.Engine) {
		s.mu.Lock()
		s.before = func(text string) string {
			if text == "PRAGMA synchronous" {
				return "not allowed"
			}
			return ""
		}
		s.mu.Unlock()
		list, err := e.Settings(context.Background())
		require.NoError(t, err)
		require.Equal(t, "server", list[0].Name)
		require.Contains(t, list, driver.Setting{Name: "journal_mode", Value: "wal"})
		for _, setting := range list {
			require.NotEqual(t, "synchronous", setting.Name)
			require.NotContains(t, setting.Value, s.token)
		}
		stats, err := e.Stats(context.Background())
		require.NoError(t, err)
		require.Positive(t, *stats.DatabaseBytes)
		require.Nil(t, stats.WALBytes)
		require.False(t, e.Capabilities().WALCheckpoint)
		_, is := e.(driver.Checkpointer)
		require.False(t, is)
	})
}

func TestReadersCannotWrite(t *testing.T) {
	bothWays(t, func(t *testing.T, _ *server, e driver.Engine) {
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (k INTEGER)") })
		view, err := e.Snapshot(context.Background())
		require.NoError(t, err)
		defer view.Close()
		_, err = view.Query(context.Background(), "INSERT INTO t VALUES (1) RETURNING k")
		require.ErrorIs(t, err, driver.ErrReadOnly)
	})
}

func TestExpiredStreams(t *testing.T) {
	ctx := context.Background()
	s := newServer(t)
	e := mustOpen(t, s, "http")
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (k INTEGER)") })

	s.forget()
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO t VALUES (1)") })

	tx, err := e.Begin(ctx)
	require.NoError(t, err)
	mustExec(t, tx, "INSERT INTO t VALUES (2)")
	s.forget()
	err = tx.Commit(ctx)
	require.ErrorIs(t, err, driver.ErrUnknownOutcome)
	require.ErrorContains(t, err, "HTTP status 400", "the cause is not hidden by a second attempt")

	view, err := e.Snapshot(ctx)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, column[int64](t, view, "SELECT k FROM t"))
	s.forget()
	_, err = view.Query(ctx, "SELECT k FROM t")
	require.Error(t, err)
	require.NoError(t, view.Close())
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, "INSERT INTO t VALUES (3)") })
}

func TestTokens(t *testing.T) {
	s := newServer(t)
	for _, scheme := range []string{"http", "ws"} {
		raw := "libsql:" + scheme + strings.TrimPrefix(s.URL, "http")
		t.Setenv(tokenVariable, s.token)
		e, err := openURL(raw, with())
		require.NoError(t, err)
		require.NoError(t, e.Close())

		_, err = openURL(raw, with("authToken", "another-token"))
		require.Error(t, err, "the parameter comes first")
		require.NotContains(t, err.Error(), "another-token", "though the server repeats it")
		require.ErrorContains(t, err, "[token]")
		require.Nil(t, causes(err, "another-token"))
	}
}

// causes returns the first error in a tree whose text has a word in it.
func causes(err error, word string) error {
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), word) {
		return err
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		return causes(e.Unwrap(), word)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if found := causes(inner, word); found != nil {
				return found
			}
		}
	}
	return nil
}

func TestCancelled(t *testing.T) {
	bothWays(t, func(t *testing.T, s *server, e driver.Engine) {
		write(t, e, func(tx driver.Tx) { mustExec(t, tx, "CREATE TABLE t (k INTEGER)") })
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.mu.Lock()
		s.before = func(text string) string {
			if strings.HasPrefix(text, "INSERT") {
				cancel() // while the client waits for the answer
				return "too late"
			}
			return ""
		}
		s.mu.Unlock()
		tx, err := e.Begin(ctx)
		require.NoError(t, err)
		for err == nil { // the answer may be faster
			_, err = tx.Exec(ctx, "INSERT INTO t VALUES (1)")
			if err != nil && strings.Contains(err.Error(), "too late") {
				err = nil
			}
		}
		require.ErrorIs(t, err, context.Canceled)
		_ = tx.Rollback()
		write(t, e, func(driver.Tx) {})
	})
}

func TestCloseTwice(t *testing.T) {
	s := newServer(t)
	e := mustOpen(t, s, "http")
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	_, err := e.Begin(context.Background())
	require.ErrorIs(t, err, driver.ErrClosed)
	http.DefaultClient.CloseIdleConnections()
}
