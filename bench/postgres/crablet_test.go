package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// shapes are the queries of go-crablet's report that are compared on one server: one
// read each, or a projection of several queries.
var shapes = func() []shape {
	course, student := event.NewTag("course_id", "course-1"), event.NewTag("student_id", "student-1")
	const defined, registered, enrolled = "CourseDefined", "StudentRegistered", "StudentEnrolledInCourse"
	return []shape{
		{"student", []event.Query{event.Tagged(student)}},
		{"category", []event.Query{event.Typed(defined, event.NewTag("category", "Computer Science"))}},
		{"grade", []event.Query{event.Typed(enrolled, event.NewTag("grade", "A"))}},
		{"project-5", []event.Query{
			event.Typed(defined, course), event.Typed(registered, student), event.Typed(enrolled, student),
			event.Typed(enrolled, course), event.Typed(enrolled, student, course),
		}},
	}
}()

type shape struct {
	name string
	of   []event.Query
}

// reader is an event store beside another one: read returns how many events came, once
// for each query that they match.
type reader interface {
	add(ctx context.Context, events []event.Event) error
	appendIf(ctx context.Context, e event.Event) error // store.ErrConflict if there is an event with its tags
	read(ctx context.Context, of []event.Query) (int, error)
}

// openReaders opens them on one server, filled with the same events.
func openReaders(tb testing.TB, data enrolment.Data) map[string]reader {
	list := map[string]reader{"crablet": openCrablet(tb, pgtest.NewURL(tb))}
	rawURL := pgtest.NewURL(tb)
	db, err := store.Open(tb.Context(), rawURL, nil)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	evs, err := db.Events(tb.Context(), nil)
	require.NoError(tb, err)
	list["varve"] = varve{evs}
	batch := make([]event.Event, 0, 500)
	flush := func() {
		for _, r := range list {
			require.NoError(tb, r.add(tb.Context(), batch))
		}
		batch = batch[:0]
	}
	for e := range data.Events() {
		if batch = append(batch, e); len(batch) == cap(batch) {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	for _, rawURL := range []string{rawURL, list["crablet"].(*crablet).url} {
		pgtest.Exec(tb, rawURL, "VACUUM (ANALYZE) events")
	}
	return list
}

type varve struct{ *store.Events }

func (v varve) add(ctx context.Context, events []event.Event) error {
	_, err := v.Append(ctx, events, nil)
	return err
}

func (v varve) appendIf(ctx context.Context, e event.Event) error {
	_, err := v.Append(ctx, []event.Event{e}, event.Unless(event.Tagged(e.Tags...)))
	return err
}

func (v varve) read(ctx context.Context, of []event.Query) (n int, err error) {
	if len(of) == 1 {
		for _, err := range v.Read(ctx, of[0], nil) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	}
	projectors := make([]event.Projector, len(of))
	for i, q := range of {
		projectors[i] = event.NewProjection(q, 0, func(state int, _ *event.Sequenced) int { n++; return state })
	}
	_, err = event.Project(ctx, v, projectors...)
	return n, err
}

// crabletTables is its table with its indexes, and a function that does what its own does in an append under a
// condition (https://github.com/rodolfodpk/go-crablet at 75cc2d7): it counts the events with the tags
// that transactions before all that are running have written, and then inserts.
var crabletTables = []string{
	`CREATE TABLE events (type VARCHAR(64) NOT NULL, tags TEXT[] NOT NULL, data JSON NOT NULL, transaction_id xid8 NOT NULL,
		position BIGSERIAL NOT NULL PRIMARY KEY, occurred_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
	"CREATE INDEX ON events (transaction_id, position)", "CREATE INDEX ON events USING GIN (tags)", "CREATE INDEX ON events (type)",
	`CREATE FUNCTION append_if(kind TEXT, labels TEXT[], body JSON) RETURNS BOOLEAN LANGUAGE plpgsql AS $$ BEGIN
		IF (SELECT count(*) FROM events WHERE tags @> labels AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())) > 0 THEN
			RETURN false;
		END IF;
		INSERT INTO events (type, tags, data, transaction_id) VALUES (kind, labels, body, pg_current_xact_id());
		RETURN true;
	END $$`,
}

// crablet is go-crablet's table with its indexes, read by the statements that it makes,
// as it reads them: in a transaction of a pool's connection, all rows into memory.
type crablet struct {
	pool *pgxpool.Pool
	url  string
}

func openCrablet(tb testing.TB, rawURL string) *crablet {
	u, err := url.Parse(rawURL)
	require.NoError(tb, err)
	q := u.Query()
	schema := q.Get("schema")
	q.Del("schema")
	u.RawQuery = q.Encode()
	cfg, err := pgxpool.ParseConfig(u.String())
	require.NoError(tb, err)
	cfg.MaxConns = 20 // as in its documentation: pgx has four, or as many as there are cores
	cfg.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	pool, err := pgxpool.NewWithConfig(tb.Context(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(pool.Close)
	for _, text := range crabletTables {
		_, err := pool.Exec(tb.Context(), text)
		require.NoError(tb, err)
	}
	require.Equal(tb, "on on", pgtest.Exec(tb, rawURL, "SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')"))
	return &crablet{pool: pool, url: rawURL}
}

func tagTexts(tags []event.Tag) []string {
	list := make([]string, len(tags))
	for i, t := range tags {
		list[i] = t.Key + ":" + t.Value
	}
	return list
}

func (c *crablet) add(ctx context.Context, events []event.Event) error {
	var types, tags, data []string
	for i := range events {
		types, data = append(types, events[i].Type), append(data, string(events[i].Data))
		tags = append(tags, "{\""+strings.Join(tagTexts(events[i].Tags), "\",\"")+"\"}")
	}
	_, err := c.pool.Exec(ctx, `INSERT INTO events (type, tags, data, transaction_id)
		SELECT type, tag::TEXT[], data::JSON, pg_current_xact_id() FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[]) AS t(type, tag, data)`, types, tags, data)
	return err
}

// appendIf calls the function in a transaction of the isolation that is go-crablet's default. No lock is taken: of
// two such transactions at a time neither sees the other's event.
func (c *crablet) appendIf(ctx context.Context, e event.Event) error {
	return pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var appended bool
		err := tx.QueryRow(ctx, "SELECT append_if($1, $2, $3)", e.Type, tagTexts(e.Tags), e.Data).Scan(&appended)
		if err == nil && !appended {
			err = store.ErrConflict
		}
		return err
	})
}

// crabletEvent is what a row becomes.
type crabletEvent struct {
	event.Event
	tx       uint64
	position int64
	at       time.Time
}

func (c *crablet) read(ctx context.Context, of []event.Query) (n int, err error) {
	var where []string
	var args []any
	for _, q := range of {
		for _, it := range q.Items {
			args = append(args, tagTexts(it.Tags))
			text := fmt.Sprintf("tags @> $%d::text[]", len(args))
			if len(it.Types) > 0 {
				args = append(args, it.Types)
				text = fmt.Sprintf("type = ANY($%d::text[]) AND ", len(args)) + text
			}
			where = append(where, "("+text+")")
		}
	}
	var events []crabletEvent
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT type, tags, data, transaction_id, position, occurred_at FROM events WHERE ("+
			strings.Join(where, " OR ")+") ORDER BY transaction_id ASC, position ASC", args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e crabletEvent
			var tags []string
			if err := rows.Scan(&e.Type, &tags, &e.Data, &e.tx, &e.position, &e.at); err != nil {
				return err
			}
			for _, text := range tags {
				key, value, _ := strings.Cut(text, ":")
				e.Tags = append(e.Tags, event.NewTag(key, value))
			}
			events = append(events, e)
		}
		return rows.Err()
	})
	for i := range events {
		for _, q := range of {
			if len(of) == 1 || q.Matches(&events[i].Event) {
				n++
			}
		}
	}
	return n, err
}

// TestBesideCrablet: both find the same and refuse the same, so that their times can be compared.
func TestBesideCrablet(t *testing.T) {
	readers := openReaders(t, enrolment.Tiny)
	for _, s := range shapes {
		want := 0
		for _, q := range s.of {
			want += enrolment.Tiny.Count(q)
		}
		for name, r := range readers {
			n, err := r.read(t.Context(), s.of)
			require.NoError(t, err)
			require.Equal(t, want, n, "%s by %s", s.name, name)
		}
	}
	for name, r := range readers {
		for n := range int64(3) {
			require.NoError(t, r.appendIf(t.Context(), named(n)), name)
			require.ErrorIs(t, r.appendIf(t.Context(), named(n)), store.ErrConflict, name)
		}
	}
}

// named is an event with a tag that no other number's has.
func named(n int64) event.Event {
	return event.Event{Type: "NameTaken", Tags: []event.Tag{event.NewTag("name", fmt.Sprint(n))}, Data: fmt.Appendf(nil, `{"name":%d}`, n)}
}

// BenchmarkBesideCrablet reads what go-crablet reads on the same server, and then appends one event at a time to
// what was read, on the condition that no event has its tag. Both are durable: the server is, and they ask for no less.
func BenchmarkBesideCrablet(b *testing.B) {
	suite.Flags.Skip(b)
	readers := openReaders(b, enrolment.Small)
	for _, s := range shapes {
		for _, name := range []string{"crablet", "varve"} {
			b.Run("query="+s.name+"/system="+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if n, err := readers[name].read(b.Context(), s.of); err != nil || n == 0 {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
	var names atomic.Int64
	for _, clients := range []int{1, 16} {
		for _, name := range []string{"crablet", "varve"} {
			b.Run(fmt.Sprintf("op=append-if/clients=%d/system=%s", clients, name), func(b *testing.B) {
				out, err := pace.Loop(b.Context(), pace.Config{Workers: clients, N: int64(b.N)}, func(ctx context.Context, _ *pace.Step) error {
					return readers[name].appendIf(ctx, named(names.Add(1)))
				})
				require.NoError(b, err)
				for _, m := range out.Kinds[0].Latency.Metrics("")[1:] { // ns/op is of all clients together
					b.ReportMetric(m.Value, m.Unit)
				}
			})
		}
	}
}
