package duckdb_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/store/driver"
	_ "github.com/varvedb/varve/store/duckdb"
)

// childVar names the database that a second process of this test opens.
const childVar = "VARVE_DUCKDB_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVar); path != "" {
		os.Exit(child(path))
	}
	if path := os.Getenv(turnsVar); path != "" {
		os.Exit(appendInTurns(path))
	}
	goleak.VerifyTestMain(m)
}

// child commits a row, forgets the engine, says so, and ends without closing when its input ends.
func child(path string) int {
	e, err := open(path, driver.Options{})
	if err == nil {
		err = insertCommit(e, row("child", 1, 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	runtime.GC() // which takes what no one can close any more, but not the lock
	runtime.GC()
	fmt.Println("committed")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// startChild runs child and returns a function that ends it.
func startChild(t *testing.T, path string) (end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "committed\n", line)
	return func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
	}
}

func open(path string, opts driver.Options) (driver.Engine, error) {
	d, _ := driver.Lookup("duckdb")
	if opts.LockTimeout == 0 {
		opts.LockTimeout = time.Millisecond
	}
	return d.Open(context.Background(), &url.URL{Scheme: "duckdb", Path: path}, opts)
}

// newPath returns the path of a database that does not exist yet, and checks at the end that nothing holds it.
func newPath(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.duckdb")
	t.Cleanup(func() { requireNoDescriptor(t, filepath.Dir(path)) })
	return path
}

func requireNoDescriptor(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: open descriptors cannot be listed")
	}
	for _, entry := range list {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil {
			require.False(t, strings.HasPrefix(target, dir), "left open: %s", target)
		}
	}
}

// openAt opens a database until the test ends.
func openAt(t *testing.T, path string, opts driver.Options) driver.Engine {
	t.Helper()
	e, err := open(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// openNew opens a new database with the test's tables.
func openNew(t *testing.T, opts driver.Options) driver.Engine {
	t.Helper()
	e := openAt(t, newPath(t), opts)
	require.NoError(t, createTables(e))
	return e
}

// attributes has every type and the indexes that make DuckDB run an update as a
// deletion and an insertion.
var attributes = &driver.Table{Name: "attributes", Columns: []driver.Column{
	{Name: "entity_key", Type: driver.Blob},
	{Name: "from_block", Type: driver.Int},
	{Name: "to_block", Type: driver.Int},
	{Name: "key", Type: driver.Text},
	{Name: "value", Type: driver.Uint},
}}

var closing = &driver.Update{
	Table: "attributes",
	Set:   driver.Column{Name: "to_block", Type: driver.Int},
	Key:   []driver.Column{attributes.Columns[0], attributes.Columns[3], attributes.Columns[1]},
}

const forEver = int64(1) << 62

func createTables(e driver.Engine) error {
	return write(e, makeTables)
}

// makeTables makes them unless they are there.
func makeTables(ctx context.Context, tx driver.Tx) error {
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS attributes (entity_key BLOB NOT NULL, from_block BIGINT NOT NULL, to_block BIGINT NOT NULL, key VARCHAR NOT NULL, value UBIGINT NOT NULL)",
		"CREATE UNIQUE INDEX IF NOT EXISTS attributes_pk ON attributes (entity_key, key, from_block)",
		"CREATE INDEX IF NOT EXISTS attributes_value ON attributes (key, value, from_block, to_block)",
		"CREATE INDEX IF NOT EXISTS attributes_end ON attributes (to_block)",
	} {
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// write runs f in a transaction.
func write(e driver.Engine, f func(ctx context.Context, tx driver.Tx) error) error {
	ctx := context.Background()
	tx, err := e.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // also when f ends the test: Close waits for it
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func row(key string, from int64, value uint64) []any {
	return []any{[]byte(key), from, forEver, "name", value}
}

// insertCommit makes the tables if need be and inserts rows.
func insertCommit(e driver.Engine, rows []any) error {
	return write(e, func(ctx context.Context, tx driver.Tx) error {
		if err := makeTables(ctx, tx); err != nil {
			return err
		}
		return tx.Insert(ctx, attributes, rows)
	})
}

// number runs a query for one integer.
func number(t *testing.T, q driver.Querier, text string, args ...any) int64 {
	t.Helper()
	n, err := driver.QueryInt(context.Background(), q, text, args...)
	require.NoError(t, err)
	return n
}

// count reads the number of rows in a new snapshot.
func count(t *testing.T, e driver.Engine) int64 {
	t.Helper()
	r := snapshot(t, e)
	n := number(t, r, "SELECT count(*) FROM attributes")
	require.NoError(t, r.Close())
	return n
}

func snapshot(t *testing.T, e driver.Engine) driver.Reader {
	t.Helper()
	r, err := e.Snapshot(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}
