package sqlite_test

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/node"
	"github.com/varvedb/varve/bench/pace"
)

// runNode puts load on a node over a small store. It tells how many blocks the node has followed.
func runNode(t *testing.T, cache *bench.Cache, layout string, cfg node.Config) (out *node.Outcome, followed uint64, err error) {
	t.Helper()
	source, err := bench.MendozaSource(0.002, 1, 20, 0.5)
	require.NoError(t, err)
	cp := openCopy(t, cache, bench.Dataset{Engine: suite.Engine, Layout: layout, Source: source})
	oracle := mix.NewOracle()
	require.NoError(t, oracle.Follow(source.Blocks()))
	cfg.Workers = 4
	out, err = node.Run(t.Context(), cp.Entities, oracle, source.Rest(), cfg)
	head, noHead := cp.Entities.Head(t.Context())
	return out, head.Number - cp.Ready.Head, errors.Join(err, noHead)
}

// TestNode: with history and without, at a rate, every answer is right; on a chain that
// grows and on one that stands still. TestLab has each protocol with all that clients call.
func TestNode(t *testing.T) {
	cache := newCache(t)
	for layout, rows := range map[string]float64{"compact": 60_000, "simple": 60_000, "arkiv": 0} {
		out, followed, err := runNode(t, cache, layout, node.Config{Protocol: "http", Calls: node.SDK, Rows: rows, Config: pace.Config{Rate: 2_000, N: 300}})
		require.NoError(t, err)
		require.EqualValues(t, 300, out.Scheduled)
		require.Zero(t, out.Errors)
		require.Equal(t, rows > 0, followed > 1, "more than the first")
	}
}

// TestNodeFindsWrongAnswers: whatever is wrong with one answer ends the run.
func TestNodeFindsWrongAnswers(t *testing.T) {
	cache := newCache(t)
	replace := func(old, with string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(with), 1) }
	}
	for _, wrong := range []struct {
		kind  string
		spoil func([]byte) []byte
	}{
		{"entity", replace(`"value":"0x`, `"value":"0x00`)},
		{"query", replace(`"blockNumber":"0x`, `"blockNumber":"0xf`)},
		{"query", func(b []byte) []byte { // it seems to be the last page
			if before, _, found := bytes.Cut(b, []byte(`,"cursor"`)); found {
				return append(bytes.Clone(before), "}}"...)
			}
			return b
		}},
		{"query", replace(`{"data":[{`, `{"data":[{},{`)},
		{"query", replace(`{"key":"0x`, `{"key":"0xf`)},
		{"entity", replace(`"contentType":"`, `"contentType":"x`)},
		{"entity", replace(`"creator":"0x`, `"creator":"0xf`)},
		{"entity", replace(`"numericAttributes":[{`, `"numericAttributes":[{"key":"new","value":77},{`)},
		{"next-page", replace(`},{"key"`, `},{"kez"`)},
		{"count", replace(`"result":`, `"result":1`)},
		{"timing", replace(`"current_block_time":`, `"current_block_time":2`)},
		{"block-number", replace(`"result":"0x`, `"result":"0xf`)},
	} {
		var heard atomic.Bool
		_, _, err := runNode(t, cache, "compact", node.Config{Protocol: "http", Calls: node.SDK, Rows: 60_000, Config: pace.Config{N: 3_000}, Heard: func(kind string, answer []byte) []byte {
			if kind == wrong.kind {
				spoilt := wrong.spoil(answer)
				if !bytes.Equal(spoilt, answer) {
					heard.Store(true)
				}
				return spoilt
			}
			return answer
		}})
		require.True(t, heard.Load(), wrong.kind)
		require.ErrorIs(t, err, bench.ErrMismatch, wrong.kind)
	}
}
