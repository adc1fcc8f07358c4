// Package pgtest gives tests databases on a PostgreSQL server of their own. One
// server is started for a test binary, by the first test that asks, and stopped
// when the binary's tests are done:
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
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/store/driver"
)

// settings keep the server small. It syncs as any other: what is tested with
// it refuses a server that does not.
var settings = []driver.Setting{
	{Name: "max_connections", Value: "60"},
	{Name: "shared_buffers", Value: "32MB"},
	{Name: "jit", Value: "off"},
	{Name: "autovacuum", Value: "off"}, // no database lives long enough to need it
}

// shared is the server of this process.
var shared struct {
	sync.Mutex
	server    *pgembed.Server
	dir       string
	err       error // why there is none, once tried
	databases int
}

// Main runs a package's tests, stops the server if one was started and returns
// the exit code. M is a *testing.M.
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// NewURL returns the URL of a new, empty database, which is dropped when the
// test ends. The test is skipped where no server can be embedded.
func NewURL(t testing.TB) string {
	t.Helper()
	server := start(t)
	shared.Lock()
	shared.databases++
	name := "test" + strconv.Itoa(shared.databases)
	shared.Unlock()
	Exec(t, URL(server, pgembed.Database), "CREATE DATABASE "+name)
	t.Cleanup(func() {
		Exec(t, URL(server, pgembed.Database), "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return URL(server, name)
}

// URL returns the URL of a database on an embedded server.
func URL(server *pgembed.Server, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(pgembed.User), Path: "/" + database}
	u.RawQuery = url.Values{"host": {server.SocketDir()}}.Encode()
	return u.String()
}

// Exec runs statements over a connection of its own and returns the first value
// of the last result's first row, or "". The test fails if they do.
func Exec(t testing.TB, rawURL, sql string) string {
	t.Helper()
	value, err := exec(rawURL, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func exec(rawURL, sql string) (value string, err error) {
	ctx := context.Background() // also for cleaning up, when a test's own is done
	conn, err := pgconn.Connect(ctx, rawURL)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		value = string(last.Rows[0][0])
	}
	return value, nil
}

// start returns the server of this process, started by the first call.
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
	if shared.dir, err = os.MkdirTemp("", "pgtest-"); err != nil {
		return err
	}
	shared.server, err = pgembed.Start(context.Background(), pgembed.Config{
		Dir:      filepath.Join(shared.dir, "server"),
		Settings: settings,
	})
	return err
}

// stop stops the server and removes its directory.
func stop() error {
	shared.Lock()
	defer shared.Unlock()
	var err error
	if shared.server != nil {
		err = shared.server.Stop(context.Background())
		shared.server = nil
	}
	if shared.dir != "" {
		err = errors.Join(err, os.RemoveAll(shared.dir))
		shared.dir = ""
	}
	return err
}
