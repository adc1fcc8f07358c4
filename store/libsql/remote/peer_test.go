package remote

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tursodatabase/libsql-client-go/libsql"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// peer is a connection of libsql-client-go.
type peer struct{ *sql.Conn }

func newPeer(t testing.TB, raw string) peer {
	target, namespace, _ := strings.Cut(strings.TrimPrefix(raw, "libsql:"), "?namespace=")
	headers := map[string]string{"X-Namespace-Bin": base64.RawStdEncoding.EncodeToString([]byte(namespace))}
	link, err := libsql.NewConnector(target, libsql.WithRequestHeaders(headers))
	require.NoError(t, err)
	db := sql.OpenDB(link)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	return peer{conn}
}

// Query implements driver.Querier.
func (p peer) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return p.QueryContext(ctx, text, args...) //nolint:rowserrcheck // selectColumn checks it
}

// sent is a statement of our client.
type sent struct {
	text string
	args []any
}

// commit runs statements in a transaction. Prepared ones would not be faster: their text is sent each time.
func (p peer) commit(t testing.TB, list []sent) {
	tx, err := p.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, s := range list {
		rows, err := tx.QueryContext(t.Context(), s.text, s.args...) // as Exec, with the rows of those that read
		require.NoError(t, err)
		require.NoError(t, errors.Join(rows.Err(), rows.Close()))
	}
	require.NoError(t, tx.Commit())
}

// recorder adds the statements of a request to the list of its context, if there is one. It refuses others, so
// that nothing is merged between blocks.
type recorder struct{ *http.Transport }

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	list, ok := request.Context().Value(recorder{}).(*[]sent)
	if !ok {
		return nil, errors.New("of no block")
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	var message struct { // a cursor, which begins the transaction, has none of these
		Requests []struct{ Batch struct{ Steps []step } }
	}
	err = json.NewDecoder(body).Decode(&message)
	for _, r := range message.Requests {
		for _, s := range r.Batch.Steps {
			next := sent{text: s.Stmt.SQL}
			for _, v := range s.Stmt.Args {
				arg, wrong := v.native()
				next.args, err = append(next.args, arg), errors.Join(err, wrong)
			}
			*list = append(*list, next)
		}
	}
	if err != nil {
		return nil, err
	}
	return r.Transport.RoundTrip(request)
}

// record makes a store, and returns what applies a block to it and tells the statements that this took.
func record(t testing.TB, raw, layout string) func(entity.Block) []sent {
	db, ents := openStore(t, raw, layout)
	client := db.Engine().(*engine).link.client
	client.Transport = recorder{client.Transport.(*http.Transport)}
	return func(blk entity.Block) (list []sent) {
		_, err := ents.Apply(context.WithValue(t.Context(), recorder{}, &list), blk)
		require.NoError(t, err)
		require.Equal(t, commit, list[len(list)-1].text)
		return list[:len(list)-1]
	}
}

// TestBesideClientGo: the peer's commits leave the rows of ours, and both clients read them.
func TestBesideClientGo(t *testing.T) {
	for _, layout := range []string{"arkiv", "compact"} {
		ours, theirs := newURL(t), newURL(t)
		apply := record(t, ours, layout)
		openStore(t, theirs, layout)
		for blk, err := range bench.Blocks(bench.Typical.WithPayload(256), bench.GenOptions{Entities: 12, PerBlock: 4, Seed: 1}) {
			require.NoError(t, err)
			newPeer(t, theirs).commit(t, apply(blk))
		}
		want := allRows(t, newPeer(t, ours))
		require.Greater(t, len(want), 3*4) // as many as there are entities
		require.Equal(t, want, allRows(t, newPeer(t, theirs)))
		for _, raw := range []string{ours, theirs} {
			require.Equal(t, want, allRows(t, snapshot(t, mustOpen(t, raw, driver.Options{}))))
		}
	}
}

// allRows returns the rows of all tables as text.
func allRows(t testing.TB, q driver.Querier) (rows []string) {
	for _, text := range selectColumn[string](t, q, `SELECT 'SELECT ' || group_concat('quote(' || c.name || ')', ' || '' '' || ') || ' FROM ' || t.name || ' ORDER BY 1'
		FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table' GROUP BY t.name`) {
		rows = append(append(rows, text), selectColumn[string](t, q, text)...)
	}
	return rows
}

// BenchmarkBesideClientGo commits a block of 20 entities, or reads 100 payloads by key, with our client and with
// libsql-client-go. Ours applies the block; the peer runs the statements that this takes.
func BenchmarkBesideClientGo(b *testing.B) {
	for _, layout := range []string{"arkiv", "compact"} {
		b.Run("op=commit-"+layout+"/client=varve", func(b *testing.B) { benchmarkCommitBeside(b, layout, true) })
		b.Run("op=commit-"+layout+"/client=libsql-client-go", func(b *testing.B) { benchmarkCommitBeside(b, layout, false) })
	}
	b.Run("op=get-100/client=varve", func(b *testing.B) { benchmarkGetBeside(b, true) })
	b.Run("op=get-100/client=libsql-client-go", func(b *testing.B) { benchmarkGetBeside(b, false) })
}

func benchmarkCommitBeside(b *testing.B, layout string, ours bool) {
	raw := newURL(b)
	_, ents := openStore(b, raw, layout)
	apply, theirs := record(b, newURL(b), layout), newPeer(b, raw)
	b.ReportAllocs()
	for blk, err := range bench.Blocks(bench.Typical, bench.GenOptions{Entities: bench.Endless, PerBlock: 20, Seed: 1}) {
		require.NoError(b, err)
		list := apply(blk)
		if blk.Number > 20 { // when most names of attributes are known
			b.StartTimer()
			if !b.Loop() {
				return
			}
		}
		if ours {
			_, err = ents.Apply(b.Context(), blk)
			require.NoError(b, err)
		} else {
			theirs.commit(b, list)
		}
		b.StopTimer()
	}
}

func benchmarkGetBeside(b *testing.B, ours bool) {
	raw := newURL(b)
	db, ents := openStore(b, raw, "arkiv")
	for blk, err := range bench.Blocks(bench.Typical, bench.GenOptions{Entities: 100, Seed: 1}) {
		require.NoError(b, err)
		_, err = ents.Apply(b.Context(), blk)
		require.NoError(b, err)
		q := driver.Querier(newPeer(b, raw))
		if ours {
			q = snapshot(b, db.Engine())
		}
		b.ReportAllocs()
		for b.Loop() {
			for _, op := range blk.Ops {
				found := selectColumn[[]byte](b, q, "SELECT payload FROM payloads WHERE entity_key = ? AND to_block > ?", op.Key[:], int64(1))
				require.Equal(b, [][]byte{op.Content}, found)
			}
		}
	}
}
