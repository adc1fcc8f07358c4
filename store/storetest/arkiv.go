package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/store/storetest/model"
	"github.com/varvedb/varve/testdata"
)

// arkivDigest is the digest after the last of the recorded Arkiv blocks, which
// is the same for every engine and layout.
const arkivDigest = "693ace66b897f11e30f34e9bec4324394f8ab10813f9cb26a6fe899300259287"

// runArkiv applies real Arkiv blocks and compares with recorded answers.
func runArkiv(t *testing.T, h Harness) {
	blocks := must(model.Collect(feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks))))(t)
	queries := recordedQueries(t)
	layouts := h.layouts()
	for i, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			l := newLedger(t, h, layout, blocks...)
			t.Run("answers", func(t *testing.T) { checkArkiv(t, l, queries) })
			if h.repeats(layout) || h.slow() && i < len(layouts)-1 {
				return
			}
			t.Run("import", func(t *testing.T) { testArkivImport(t, h, layout, queries) })
			if i == 0 || i == len(layouts)-1 { // what differs is in the engine
				t.Run("import of a state", func(t *testing.T) { testArkivState(t, h, layout, blocks, queries) })
			}
		})
	}
}

// recordedQuery is a query with its right answer.
type recordedQuery struct {
	Query   string
	AtBlock uint64
	Keys    []string // of the entities that match, sorted
}

func recordedQueries(t testing.TB) (queries []recordedQuery) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "queries.jsonl")
	require.NoError(t, os.WriteFile(path, testdata.ArkivQueries, 0o600))
	queries := must(feed.RecordedQueries(path))(t)
	require.Len(t, queries, 52)
	return queries
}

// checkArkiv checks the digest and every recorded answer. Those about past
// blocks must be refused by layouts without history.
func checkArkiv(t testing.TB, l *ledger, queries []recordedQuery) {
	t.Helper()
	head := must(l.ents.Head(t.Context()))(t)
	require.Equal(t, uint64(1263), head.Number)
	require.Equal(t, arkivDigest, head.Digest.String())
	summary := must(l.ents.Summary(t.Context()))(t)
	require.EqualValues(t, 100, summary.Blocks)
	checkAnswers(t, l, queries)
}

func checkAnswers(t testing.TB, l *ledger, queries []recordedQuery) {
	t.Helper()
	for _, q := range queries {
		l.view(t, q.AtBlock, func(s *store.Snapshot) {
			expr := parse(t, q.Query)
			var keys []string
			for _, e := range results(t, s, expr, &store.QueryOptions{Parts: store.Metadata}) {
				keys = append(keys, e.Key.String())
			}
			slices.Sort(keys)
			require.True(t, slices.Equal(q.Keys, keys), "%s at %d: %d keys, want %d", q.Query, q.AtBlock, len(keys), len(q.Keys))
			n := must(s.Count(t.Context(), expr))(t)
			require.EqualValues(t, len(q.Keys), n, "%s at %d", q.Query, q.AtBlock)
		})
	}
}

// testArkivImport: the database that Arkiv's own store made of the blocks gives
// the same store as the blocks.
func testArkivImport(t *testing.T, h Harness, layout string, queries []recordedQuery) {
	l := newLedger(t, h, layout)
	engine := openArkiv(t, h, l, "sqlite-store.db")

	done := must(l.ents.Import(t.Context(), feed.Arkiv(t.Context(), engine), store.LoadOptions{}))(t)
	require.Equal(t, arkivDigest, done.Head.Digest.String())
	l.head = done.Head.Number
	checkAnswers(t, l, queries)
	again := must(l.ents.Import(t.Context(), feed.Arkiv(t.Context(), engine), store.LoadOptions{}))(t)
	require.Zero(t, again.Blocks)
	require.Equal(t, done.Head, again.Head)
}

// testArkivState: the database of Arkiv's other store, which has the current state
// only, gives a store that answers as of its last block, refuses earlier ones, and
// goes on with the blocks that follow.
func testArkivState(t *testing.T, h Harness, layout string, blocks []entity.Block, queries []recordedQuery) {
	const head = 1131
	l := newLedger(t, h, layout)
	engine := openArkiv(t, h, l, "sqlite-bitmap-store.db")

	var done store.Applied
	for range 2 {
		done = must(l.ents.Import(t.Context(), feed.Arkiv(t.Context(), engine), store.LoadOptions{Changes: 100}))(t)
		require.EqualValues(t, head, done.Head.Number)
	}
	require.NotZero(t, done.Skipped)
	require.Zero(t, done.Blocks)
	verified := must(l.ents.Verify(t.Context()))(t)
	require.False(t, verified.Digest)

	l.head = head
	checkAnswers(t, l, slices.DeleteFunc(slices.Clone(queries), func(q recordedQuery) bool { return q.AtBlock != head }))
	if l.ents.Temporal() {
		_, err := l.ents.At(t.Context(), head-1)
		require.ErrorIs(t, err, store.ErrBlockRange)
		require.ErrorIs(t, l.ents.Rewind(t.Context(), head-1), store.ErrBlockRange)
	}
	for _, b := range blocks {
		if b.Number > head {
			l.applyBlocks(t, b)
		}
	}
	checkAnswers(t, l, slices.DeleteFunc(slices.Clone(queries), func(q recordedQuery) bool { return q.AtBlock < head }))
}

// openArkiv opens a copy of one of Arkiv's databases with the engine of l, if that
// reads SQLite files.
func openArkiv(t *testing.T, h Harness, l *ledger, name string) driver.Engine {
	t.Helper()
	info := l.db.Engine().Info()
	if info.Dialect != driver.SQLite || h.Server {
		t.Skipf("engine %s does not read SQLite files", info.Name)
	}
	d, linked := driver.Lookup(info.Name)
	require.True(t, linked)
	u := &url.URL{Scheme: info.Name, Path: filepath.ToSlash(arkivDatabase(t, name))}
	engine := must(d.Open(t.Context(), u, driver.Options{ReadOnly: true}.WithDefaults()))(t)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// arkivDatabase copies a database of Arkiv's, which is too large to be
// embedded, and returns the path of the copy.
func arkivDatabase(t testing.TB, file string) string {
	t.Helper()
	dir := must(os.Getwd())(t)
	name := filepath.Join("testdata", "arkiv-small", file)
	for {
		_, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			break
		}
		require.ErrorIs(t, err, fs.ErrNotExist)
		if filepath.Dir(dir) == dir {
			t.Skipf("%s is in no directory above the tests: they run outside Varve's repository", name)
		}
		dir = filepath.Dir(dir)
	}
	from := must(os.Open(filepath.Join(dir, name)))(t)
	path := filepath.Join(t.TempDir(), "arkiv.db")
	to := must(os.Create(path))(t)
	_, err := io.Copy(to, from)
	require.NoError(t, errors.Join(err, to.Close(), from.Close()))
	return path
}
