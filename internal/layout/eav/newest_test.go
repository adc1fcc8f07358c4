package eav_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/layout/eav"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// perBlock is how many entities a block of history creates.
const perBlock = 50

// creator is one of twenty.
func creator(i int) (a entity.Address) {
	a[0] = byte(1 + i%20)
	return a
}

// sqliteHistory is a history on SQLite. It returns the file.
func sqliteHistory(t testing.TB, layout string, blocks int) (*store.DB, string) {
	file := t.TempDir() + "/varve.db"
	return history(t, "sqlite://"+file+"?durability=unsafe", layout, blocks), file
}

// history is a store of blocks that are all alike.
func history(t testing.TB, url, layout string, blocks int) *store.DB {
	ctx := context.Background()
	db, err := store.Open(ctx, url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	load(t, ents, 0, blocks)
	return db
}

// load loads blocks of a history, from one number on to below another.
func load(t testing.TB, ents *store.Entities, from, to int) {
	_, err := ents.Load(context.Background(), func(yield func(entity.Block, error) bool) {
		for n := from; n < to && yield(historyBlock(n), nil); n++ {
		}
	}, nil)
	require.NoError(t, err)
}

// historyBlock creates entities, changes some that are twenty blocks old, and deletes some that
// are ten.
func historyBlock(n int) entity.Block {
	b := entity.Block{Number: uint64(n + 1)}
	for i := range perBlock {
		b.Ops = append(b.Ops, thing(entity.Create, n*perBlock+i, 0))
		if i%10 == 3 && n >= 20 {
			b.Ops = append(b.Ops, thing(entity.Update, (n-20)*perBlock+i, 1))
		}
		if i%20 == 4 && n >= 10 {
			b.Ops = append(b.Ops, entity.Op{Kind: entity.Delete, Key: keyOf((n-10)*perBlock + i)})
		}
	}
	for i := range b.Ops {
		b.Ops[i].OpIndex = uint32(i)
	}
	return b
}

func thing(kind entity.Kind, i, version int) entity.Op {
	return entity.Op{
		Kind: kind, Key: keyOf(i), BTL: 100_000, Owner: creator(i),
		StringAttributes:  map[string]string{"type": []string{"node", "vm", "disk", "net"}[i/20%4], "status": []string{"up", "down"}[version]},
		NumericAttributes: map[string]uint64{"gpu": uint64(max(0, i%10-6)), "price": uint64(i * 7919 % 100_003)},
	}
}

// recorder is a querier that keeps the statements, and how many rows were read of each.
type recorder struct {
	driver.Querier
	statements []*statement
}

type statement struct {
	driver.Rows
	text string
	args []any
	read int
}

func (r *recorder) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := r.Querier.Query(ctx, text, args...)
	s := &statement{Rows: rows, text: text, args: args}
	r.statements = append(r.statements, s)
	return s, err
}

func (s *statement) Next() bool {
	s.read++
	return s.Rows.Next()
}

// anyNumber of entities.
const anyNumber = -1

// ask returns the statements that answer a request at a block, with so many entities.
func ask(t *testing.T, db *store.DB, name string, at uint64, req layout.Request, want int) *recorder {
	dialect := db.Engine().Info().Dialect
	schema, err := schemas.Entities(name, string(dialect))
	require.NoError(t, err)
	r, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	rec := &recorder{Querier: r}
	view, err := eav.New(schema, dialect, db.Engine().Capabilities()).View(t.Context(), rec, at)
	require.NoError(t, err)
	found := 0
	for _, err := range view.Query(t.Context(), req) {
		require.NoError(t, err)
		found++
	}
	if want != anyNumber {
		require.Equal(t, want, found, "%s", req.Expr)
	}
	return rec
}

// pages returns how many pages SQLite reads for the statements, with an empty cache.
func pages(t *testing.T, file string, rec *recorder) int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx := context.Background()
	db, err := sql.Open("varve-sqlite", "file:"+file+"?mode=ro")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(ctx, "PRAGMA cache_size = 512")
	require.NoError(t, err)
	before := bytesRead(t)
	for _, s := range rec.statements {
		var args []any
		for _, a := range s.args {
			args = append(args, sqlstore.OrderedBlob{}.Encode(a))
		}
		rows, err := conn.QueryContext(ctx, s.text, args...)
		require.NoError(t, err)
		for range s.read {
			rows.Next()
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	return (bytesRead(t) - before) / 4096
}

// bytesRead returns how much this thread has read from files.
func bytesRead(t *testing.T) (n int64) {
	text, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Skip("what a thread reads is not told here:", err)
	}
	_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	require.NoError(t, err)
	return n
}

// newest are questions for the newest few of many.
var newest = []string{
	`type = "node"`,
	`status = "up"`,
	`status = "down"`, // created long before: the versions that are read first do not suffice
	`status in ("up", "down", "up") && type != "vm"`,
	`$creator = 0x0300000000000000000000000000000000000000 && type = "node"`,
	`type = "node" && price > 50000 && !(gpu = 1 || status = "down")`,
	`gpu > 1`,
	`*`,
	`$lastModifiedAtBlock >= 20 && $lastModifiedAtBlock < 60`,
	`price > 50000`,
	`type ~ "n*" && price != 7`,
	`status != "gone"`,
}

// TestNewestDoNotGrow: the newest few take as many pages of a store as of one four times
// as large, at the head and in the past. All matches take more, and so does everything on
// Arkiv's indexes with Arkiv's SQL.
func TestNewestDoNotGrow(t *testing.T) {
	const (
		limit  = 20
		deeper = 16 // the searches of a question, each a page longer
	)
	sizes := []int{60, 240}
	stores := map[string]func(text string, limit int, past uint64, found int) [2]int64{}
	for _, name := range []string{"arkiv", "arkiv-ordered"} {
		var dbs []*store.DB
		var files []string
		for _, n := range sizes {
			db, file := sqliteHistory(t, name, n)
			dbs, files = append(dbs, db), append(files, file)
		}
		stores[name] = func(text string, limit int, past uint64, found int) (n [2]int64) {
			for i, size := range sizes {
				req := layout.Request{Expr: parse(text), Limit: limit}
				n[i] = pages(t, files[i], ask(t, dbs[i], name, uint64(size)-past, req, found))
			}
			return n
		}
	}
	for _, q := range newest {
		for _, past := range []uint64{0, 20} {
			n := stores["arkiv-ordered"](q, limit, past, limit)
			t.Logf("%s, %d blocks ago: %v pages", q, past, n)
			require.LessOrEqual(t, n[1], n[0]*3/2+deeper, "%s: %v pages", q, n)
			n = stores["arkiv"](q, limit, past, limit)
			t.Logf("%s, %d blocks ago, with Arkiv's SQL: %v pages", q, past, n)
			require.Greater(t, n[1], 2*n[0], "%s: %v pages", q, n)
		}
	}
	one := `$key = ` + keyOf(120).String()
	n := stores["arkiv-ordered"](one, 0, 0, 1)
	require.LessOrEqual(t, n[1], n[0]+5, "one entity: %v pages", n)
	n = stores["arkiv-ordered"](`type = "node"`, 0, 0, anyNumber)
	require.Greater(t, n[1], 3*n[0], "all: %v pages", n)
}

// TestNewestDoNotGrowOnServers: the same on Postgres, whose planner is free to do otherwise.
func TestNewestDoNotGrowOnServers(t *testing.T) {
	if testing.Short() {
		t.Skip("a store on a server takes a while to write")
	}
	const limit, deeper = 20, 300 // of some ten searches of indexes, each a few pages
	sizes := []int{240, 720}
	url := pgtest.NewURL(t)
	db := history(t, url, "arkiv-ordered", 0)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	first := map[string]int64{}
	for i, size := range sizes {
		load(t, ents, i*sizes[0], size)
		pgtest.Exec(t, url, "ANALYZE string_attributes; ANALYZE numeric_attributes; ANALYZE payloads")
		for _, q := range newest {
			n := buffers(t, db, ask(t, db, "arkiv-ordered", uint64(size), layout.Request{Expr: parse(q), Limit: limit}, limit))
			t.Logf("%s, of %d blocks: %d pages", q, size, n)
			if i == 0 {
				first[q] = n
			}
			require.LessOrEqual(t, n, first[q]*3/2+deeper, q)
		}
	}
}

// buffers returns how many pages Postgres reads for statements.
func buffers(t *testing.T, db *store.DB, rec *recorder) (pages int64) {
	r, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for _, s := range rec.statements {
		pages += pgtest.Pages(t, r, s.text, s.args...)
	}
	return pages
}

// TestNewestPlans: what finds the newest few sorts nothing and reads no table.
func TestNewestPlans(t *testing.T) {
	db, _ := sqliteHistory(t, "arkiv-ordered", 60)
	for _, q := range newest {
		t.Run(q, func(t *testing.T) {
			steps := plans(t, db, ask(t, db, "arkiv-ordered", 60, layout.Request{Expr: parse(q), Limit: 20}, 20))
			searches := 0
			for _, step := range steps {
				require.NotContains(t, step, "TEMP B-TREE", strings.Join(steps, "\n"))
				for _, alias := range []string{"a", "e", "s", "w"} {
					require.False(t, step == "SCAN "+alias || strings.HasPrefix(step, "SCAN "+alias+" "), strings.Join(steps, "\n"))
				}
				if strings.HasPrefix(step, "SEARCH ") {
					searches++
				}
			}
			require.Greater(t, searches, 1)
		})
	}
}

// plans returns the steps of statements.
func plans(t *testing.T, db *store.DB, rec *recorder) (steps []string) {
	r, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for _, s := range rec.statements {
		rows, err := r.Query(t.Context(), "EXPLAIN QUERY PLAN "+s.text, s.args...)
		require.NoError(t, err)
		for rows.Next() {
			var id, parent, unused int64
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			steps = append(steps, step)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	return steps
}
