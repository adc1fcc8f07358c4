// Package pgtest gives tests a PostgreSQL server of their own. One server is started for a test
// binary, by the first test that asks, and stopped when the binary's tests are done:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestX(t *testing.T) {
//		db, err := store.Open(ctx, pgtest.NewURL(t), nil)
//		…
//	}
package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/temptest"
	"github.com/varvedb/varve/store/driver"
)

// settings keep the server small. Its durability is the default, because stores
// refuse a lower one; its files are in memory.
var settings = []driver.Setting{
	{Name: "max_connections", Value: "60"},
	{Name: "shared_buffers", Value: "32MB"},
	{Name: "jit", Value: "off"},
	{Name: "autovacuum", Value: "off"}, // no table lives long enough to need it
}

// shared is the server of this process, with a connection that creates and
// drops schemas.
var shared struct {
	sync.Mutex
	server  *pgembed.Server
	admin   *pgconn.PgConn
	dir     string
	err     error // why there is none, once tried
	schemas int
}

// Main runs a package's tests, stops the server if one was started, and returns
// the exit code. M is a *testing.M.
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// NewURL returns the URL of a new, empty schema, which is dropped with its
// contents when the test ends. A schema is used because creating a database
// takes a hundred times as long. Its name must be quoted in SQL, so that every
// test also tests quoting. The test is skipped where no server can be embedded.
func NewURL(t testing.TB) string {
	t.Helper()
	server := start(t)
	shared.Lock()
	defer shared.Unlock()
	shared.schemas++
	name := fmt.Sprintf(`Test %d, "it's" größer.`, shared.schemas)
	quoted := pgx.Identifier{name}.Sanitize()
	mustRun(t, shared.admin, "CREATE SCHEMA "+quoted)
	t.Cleanup(func() {
		shared.Lock()
		defer shared.Unlock()
		mustRun(t, shared.admin, "DROP SCHEMA IF EXISTS "+quoted+" CASCADE")
	})
	return URL(server, pgembed.Database) + "&schema=" + url.QueryEscape(name)
}

// URL returns the URL of a database on an embedded server.
func URL(server *pgembed.Server, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(pgembed.User), Path: "/" + database}
	u.RawQuery = url.Values{"host": {server.SocketDir()}}.Encode()
	return u.String()
}

// WithDatabase returns rawURL with another database and no schema.
func WithDatabase(t testing.TB, rawURL, database string) string {
	t.Helper()
	u, query := parse(t, rawURL)
	u.Path = "/" + database
	query.Del("schema")
	u.RawQuery = query.Encode()
	return u.String()
}

func parse(t testing.TB, rawURL string) (*url.URL, url.Values) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return u, u.Query()
}

// Exec runs statements in a URL's schema, over a new connection, and returns
// the first value of the last result's first row, or "". The test fails if a
// statement fails.
func Exec(t testing.TB, rawURL, sql string) string {
	t.Helper()
	u, query := parse(t, rawURL)
	if schema := query.Get("schema"); schema != "" {
		query.Del("schema")
		query.Set("search_path", pgx.Identifier{schema}.Sanitize())
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // a plus is no space to pgconn
	ctx := context.Background()                                 // also for cleaning up, when the test's own is done
	conn, err := pgconn.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // its error would hide that of the statement
	return mustRun(t, conn, sql)
}

// Pages runs a statement and returns how many pages the server reads for it,
// from memory or disk.
func Pages(t testing.TB, q driver.Querier, text string, args ...any) int64 {
	t.Helper()
	var answer []byte
	if err := driver.QueryRow(t.Context(), q, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+text, args, &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var plans []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(answer, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

func mustRun(t testing.TB, conn *pgconn.PgConn, sql string) string {
	t.Helper()
	results, err := conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0])
	}
	return ""
}

// start returns the server of this process; the first call starts it.
func start(t testing.TB) *pgembed.Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.err = startShared()
	}
	if errors.Is(shared.err, driver.ErrUnsupported) {
		t.Skipf("needs an embedded server: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func startShared() (err error) {
	if shared.dir, err = temptest.MkdirTemp("pgtest-"); err != nil {
		return err
	}
	shared.server, err = pgembed.Start(context.Background(), pgembed.Config{
		Dir:      filepath.Join(shared.dir, "server"),
		Settings: settings,
	})
	if err != nil {
		return err
	}
	cfg, err := shared.server.ConnConfig()
	if err != nil {
		return err
	}
	shared.admin, err = pgconn.ConnectConfig(context.Background(), &cfg.Config)
	return err
}

// stop stops the server and removes its directory.
func stop() error {
	shared.Lock()
	defer shared.Unlock()
	var err error
	if shared.admin != nil {
		err = shared.admin.Close(context.Background())
	}
	if shared.server != nil {
		err = errors.Join(err, shared.server.Stop(context.Background()))
	}
	if shared.dir != "" {
		err = errors.Join(err, os.RemoveAll(shared.dir))
	}
	return err
}
