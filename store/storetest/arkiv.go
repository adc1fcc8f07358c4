package storetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/store/storetest/model"
	"github.com/varvedb/varve/testdata"
)

// runArkiv applies real Arkiv blocks and compares with recorded answers.
func runArkiv(t *testing.T, h Harness) {
	blocks := must(model.Collect(feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks))))(t)
	queries := recordedQueries(t)
	for _, layout := range h.layouts() {
		t.Run(layout, func(t *testing.T) { checkArkiv(t, newLedger(t, h, layout, blocks...), queries) })
	}
}

func recordedQueries(t testing.TB) []feed.RecordedQuery {
	t.Helper()
	path := filepath.Join(t.TempDir(), "queries.jsonl")
	require.NoError(t, os.WriteFile(path, testdata.ArkivQueries, 0o600))
	queries := must(feed.RecordedQueries(path))(t)
	require.Len(t, queries, 52)
	return queries
}

// checkArkiv checks the digest and every recorded answer. Those about past
// blocks must be refused by layouts without history.
func checkArkiv(t testing.TB, l *ledger, queries []feed.RecordedQuery) {
	t.Helper()
	head := must(l.ents.Head(t.Context()))(t)
	require.Equal(t, uint64(1263), head.Number)
	require.Equal(t, testdata.ArkivDigest, head.Digest.String())
	summary := must(l.ents.Summary(t.Context()))(t)
	require.EqualValues(t, 100, summary.Blocks)
	for _, q := range queries {
		l.view(t, q.AtBlock, func(s *store.Snapshot) {
			expr := parse(t, q.Query)
			keys := []entity.Key{}
			for _, e := range results(t, s, expr, &store.QueryOptions{Parts: store.Metadata}) {
				keys = append(keys, e.Key)
			}
			slices.SortFunc(keys, func(a, b entity.Key) int { return bytes.Compare(a[:], b[:]) })
			require.True(t, slices.Equal(q.Keys, keys), "%s at %d: %d keys, want %d", q.Query, q.AtBlock, len(keys), len(q.Keys))
			n := must(s.Count(t.Context(), expr))(t)
			require.EqualValues(t, len(q.Keys), n, "%s at %d", q.Query, q.AtBlock)
		})
	}
}
