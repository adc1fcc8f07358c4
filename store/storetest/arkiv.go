package storetest

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

// runArkiv applies real Arkiv blocks and compares queries with recorded
// answers.
func runArkiv(t *testing.T, h Harness) {
	blocks := collect(t, feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks)))
	queries := recordedQueries(t)
	for _, h.layout = range h.layouts() {
		t.Run(h.layout, func(t *testing.T) { checkArkiv(t, newLedger(t, h, blocks...), queries) })
	}
}

// recordedQuery is a query and its recorded answer.
type recordedQuery struct {
	Query   string
	AtBlock uint64
	Keys    []string // of the matching entities, sorted
}

func recordedQueries(t testing.TB) (queries []recordedQuery) {
	t.Helper()
	for text := range bytes.Lines(testdata.ArkivQueries) {
		var q recordedQuery
		require.NoError(t, json.Unmarshal(text, &q))
		queries = append(queries, q)
	}
	require.Len(t, queries, 52)
	return queries
}

// checkArkiv checks the digest and every recorded answer. A layout without
// history must refuse the queries of past blocks.
func checkArkiv(t testing.TB, l *ledger, queries []recordedQuery) {
	t.Helper()
	head := call(t, l.ents.Head)
	require.Equal(t, uint64(1263), head.Number)
	require.Equal(t, testdata.ArkivDigest, head.Digest.String())
	summary := call(t, l.ents.Summary)
	require.EqualValues(t, 100, summary.Blocks)
	for _, q := range queries {
		l.view(t, q.AtBlock, func(s *store.Snapshot) {
			expr := parse(t, q.Query)
			var keys []string
			for _, e := range results(t, s, expr, &store.QueryOptions{Parts: store.Metadata}) {
				keys = append(keys, e.Key.String())
			}
			slices.Sort(keys)
			require.True(t, slices.Equal(q.Keys, keys), "%s at %d: %d keys, want %d", q.Query, q.AtBlock, len(keys), len(q.Keys))
			n := call1(t, s.Count, expr)
			require.EqualValues(t, len(q.Keys), n, "%s at %d", q.Query, q.AtBlock)
		})
	}
}
