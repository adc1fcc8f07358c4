package postgres

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"
)

// startPooler puts a pgbouncer before the server of a URL, and returns the URL that leads through it.
func startPooler(t testing.TB, rawURL, mode string, sessions int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("needs pgbouncer (Debian's package of that name)")
	}
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	q := u.Query()
	dir, err := os.MkdirTemp("", "pooler") // a test's own name may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	config := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
* = host=%s user=%s
[pgbouncer]
unix_socket_dir = %s
auth_type = any
pool_mode = %s
default_pool_size = %d
`, q.Get("host"), u.User.Username(), dir, mode, sessions), 0o600))
	cmd := exec.Command(program, "-q", config)
	if os.Geteuid() == 0 { // which it refuses: as the server, it is another user in a namespace
		ids := []syscall.SysProcIDMap{{ContainerID: 65534, HostID: 0, Size: 1}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // that it was killed
	})
	const port = "6432"
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL."+port))
		return err == nil && c.Close() == nil
	}, 10*time.Second, 10*time.Millisecond)
	q.Set("host", dir)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	return u.String()
}

// neighbour is another client of a pooler, without a store.
type neighbour struct{ *pgx.Conn }

func newNeighbour(t testing.TB, rawURL string) neighbour {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	q := u.Query()
	q.Del("schema")
	q.Set("default_query_exec_mode", "simple_protocol")
	u.RawQuery = q.Encode()
	c, err := pgx.Connect(context.Background(), u.String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return neighbour{c}
}

// session returns all that a client finds in the session which it is given.
func (n neighbour) session(t testing.TB) map[string]string {
	t.Helper()
	rows, err := n.Query(context.Background(), `SELECT name, setting FROM pg_settings
UNION ALL SELECT 'prepared', string_agg(statement, '; ') FROM pg_prepared_statements
UNION ALL SELECT 'locks', string_agg(objid::text, '; ') FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
UNION ALL SELECT 'schemas', current_schemas(true)::text`)
	require.NoError(t, err)
	found := map[string]string{}
	var name string
	var value *string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		if value != nil {
			found[name] = *value
		}
		return nil
	})
	require.NoError(t, err)
	return found
}

// TestPooler: whatever a pooler does with sessions, a store behind it works, and others find them as they were.
func TestPooler(t *testing.T) {
	for _, test := range []struct {
		mode     string
		sessions int
	}{{"transaction", 1}, {"transaction", 4}, {"session", 20}} {
		t.Run(fmt.Sprintf("mode=%s/sessions=%d", test.mode, test.sessions), func(t *testing.T) {
			direct := asPoor(t, pgtest.NewURL(t))
			pooled := startPooler(t, direct, test.mode, test.sessions)
			rivals := []neighbour{newNeighbour(t, pooled)}
			if test.mode == "transaction" { // one session for each, when they ask at once
				for len(rivals) < test.sessions {
					rivals = append(rivals, newNeighbour(t, pooled))
				}
			}
			before := rivals[0].session(t)
			unchanged := func() { require.Equal(t, before, rivals[0].session(t)) }
			useStore(t, pooled, test.sessions > 1, unchanged)
			for _, r := range rivals {
				_, err := r.Exec(t.Context(), "BEGIN")
				require.NoError(t, err)
				require.Equal(t, before, r.session(t))
			}
		})
	}
}

// useStore uses all parts of a store, and calls meanwhile between its steps.
// With several it takes several views at once, and so several sessions.
func useStore(t *testing.T, rawURL string, several bool, meanwhile func()) {
	ctx := t.Context()
	opts := &store.Options{Durability: driver.Relaxed, LockTimeout: 4 * time.Second}
	db, err := store.Open(ctx, rawURL, opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	meanwhile()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: "compact"})
	require.NoError(t, err)
	evs, err := db.Events(ctx, nil)
	require.NoError(t, err)
	for n := range uint64(20) {
		op := entity.Op{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 1000, Content: []byte("x"),
			StringAttributes: map[string]string{"name": "é"}, NumericAttributes: map[string]uint64{"n": n << 60}}
		_, err = ents.Apply(ctx, entity.Block{Number: n, Ops: []entity.Op{op}})
		require.NoError(t, err)
		_, err = evs.Append(ctx, []event.Event{{Type: "made", Data: []byte{byte(n)}, Tags: []event.Tag{{Key: "n", Value: fmt.Sprint(n % 3)}}}}, nil)
		require.NoError(t, err)
		meanwhile()
	}
	require.NoError(t, ents.Flush(ctx))
	meanwhile()
	requireSetUp(t, db.Engine())
	q, err := query.Parse(`name = "é" && n >= 0`)
	require.NoError(t, err)
	n := 0
	snap, err := ents.At(ctx, store.Head)
	require.NoError(t, err)
	for _, err := range snap.Query(ctx, q, nil) {
		require.NoError(t, err)
		n++
	}
	require.NoError(t, snap.Close())
	require.Equal(t, 20, n)
	meanwhile()

	opts.ReadOnly = true
	again, err := store.Open(ctx, rawURL, opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close()) }()
	require.NoError(t, again.Engine().(*engine).WithSpare(ctx, func(c *sqlstore.Conn) error {
		value, err := c.QueryText(ctx, "SHOW transaction_read_only")
		require.Equal(t, "on", value)
		return err
	}))
	if several {
		report, err := again.Check(ctx, nil)
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	}
	meanwhile()
}

// requireSetUp checks that each transaction has the settings that a private
// session would have.
func requireSetUp(t *testing.T, e driver.Engine) {
	t.Helper()
	for name, want := range map[string]string{
		"application_name": "varve", "lock_timeout": "4s", "jit": "off", "synchronous_commit": "off", "client_encoding": "UTF8", "transaction_read_only": "off",
	} {
		tx, err := e.Begin(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, show(t, tx, name), name)
		require.NoError(t, tx.Rollback())
	}
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, "on", show(t, r, "transaction_read_only"))
	require.NoError(t, r.Close())
	got := settings(t, e)
	require.Equal(t, "4s", got["lock_timeout"])
	require.Contains(t, got["search_path"], "Test")
}

func show(t *testing.T, q driver.Querier, name string) (value string) {
	t.Helper()
	rows, err := q.Query(t.Context(), "SHOW "+name)
	require.NoError(t, err)
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&value))
	require.NoError(t, rows.Close())
	return value
}
