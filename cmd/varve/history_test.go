package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

const (
	lamp         = "0x0000000000000000000000000000000000000000000000000000000000000001"
	exampleLines = "../../testdata/blocks.jsonl"
)

// columns returns the rows of a table, with one space between its columns.
func columns(text string) (rows []string) {
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return rows
}

// TestLookBack: the three commands say of the example what its operations do, on each
// engine and layout with history, also while a process writes.
func TestLookBack(t *testing.T) {
	besides(t)
	const owner, next = "0x00000000000000000000000000000000000000aa", "0x00000000000000000000000000000000000000bb"
	for _, dst := range []string{
		url(t, "a.db"), url(t, "b.db") + "?layout=arkiv", url(t, "c.db") + "?layout=bare", "sqlitego:" + filepath.Join(t.TempDir(), "d.db"),
		"duckdb:" + filepath.Join(t.TempDir(), "e.duckdb"), "libsql:" + filepath.Join(t.TempDir(), "f.db"),
		"postgres:" + filepath.Join(t.TempDir(), "g") + "?layout=arkiv",
	} {
		must(t, "import", exampleLines, dst)
		require.Equal(t, []string{
			"BLOCK WHAT OWNER EXPIRES BYTES CHANGED",
			"6 deleted",
			"3 extended, owner changed " + next + " 1003 0",
			"2 updated " + owner + ` never 0 price = 1500, payload of 0 bytes, content type ""`,
			"1 created " + owner + ` never 7 name = "lamp", type = "product", price = 1900, serial = 18446744073709551615, payload of 7 bytes, content type "text/plain"`,
		}, columns(must(t, "history", dst, lamp)), dst)
		require.Equal(t, []string{
			"BLOCK TIME CREATED UPDATED EXTENDED OWNER CHANGED DELETED EXPIRED",
			"6 - 0 0 0 0 1 0", "5 - 0 0 0 0 0 1", "3 - 0 0 1 1 0 0", "2 2025-01-01T00:00:02Z 0 1 0 0 0 0", "1 2025-01-01T00:00:00Z 2 0 0 0 0 0",
			"5 blocks; the head is 6",
		}, columns(must(t, "log", dst)), dst)
		require.Equal(t, []string{"3", "2"}, first(columns(must(t, "log", dst, "--to=4", "--limit=2"))[1:3]), "4 is between two blocks")
		require.Equal(t, []string{"6", "5"}, first(columns(must(t, "log", dst, "--from=4", "--limit=0"))[1:3]))

		changed := columns(must(t, "diff", dst, "1", "4"))
		require.Equal(t, "updated, owner changed "+lamp+" 3 "+next+` 1003 0 price = 1500, payload of 0 bytes, content type ""`, changed[1])
		require.Equal(t, "from block 1 to 4: 1 updated, 1 owner changed", changed[len(changed)-1])
		require.Contains(t, must(t, "diff", dst, "1", "6"), "from block 1 to 6: 1 deleted, 1 expired\n")
		require.Contains(t, must(t, "diff", dst, "0", "6"), "from block 0 to 6: nothing changed\n", "both were made and ended in between")
		require.Contains(t, must(t, "diff", dst, "5", "5"), "nothing changed")
	}
}

// first returns the first word of each line.
func first(lines []string) (words []string) {
	for _, line := range lines {
		word, _, _ := strings.Cut(line, " ")
		words = append(words, word)
	}
	return words
}

// TestLookBackJSON: each line is one object, and has both versions.
func TestLookBackJSON(t *testing.T) {
	dst := url(t, "a.db")
	must(t, "import", exampleLines, dst)
	objects := func(args ...string) (list []map[string]any) {
		dec := json.NewDecoder(strings.NewReader(must(t, append(args, "--json")...)))
		for dec.More() {
			var one map[string]any
			require.NoError(t, dec.Decode(&one))
			list = append(list, one)
		}
		return list
	}
	history := objects("history", dst, lamp)
	require.Len(t, history, 4)
	require.Equal(t, map[string]any{"block": 6.0, "happened": []any{"deleted"}}, history[0])
	require.Equal(t, "18446744073709551615", history[3]["entity"].(map[string]any)["numeric_attributes"].(map[string]any)["serial"])
	log := objects("log", dst, "--limit=1")
	require.Len(t, log, 1)
	require.Equal(t, []any{6.0, 0.0, 1.0}, []any{log[0]["block"], log[0]["created"], log[0]["deleted"]})
	require.Len(t, log[0]["digest"], 64)
	diff := objects("diff", dst, "1", "3")
	require.Len(t, diff, 1)
	require.Equal(t, 1900.0, diff[0]["before"].(map[string]any)["numeric_attributes"].(map[string]any)["price"])
	require.Equal(t, 1500.0, diff[0]["after"].(map[string]any)["numeric_attributes"].(map[string]any)["price"])
}

// TestLookBackRefuses: what cannot be known is refused, and says why.
func TestLookBackRefuses(t *testing.T) {
	dst, head := url(t, "a.db"), url(t, "b.db")+"?layout=simple"
	must(t, "import", exampleLines, dst)
	must(t, "import", exampleLines, head)
	other := strings.Replace(lamp, "0001", "0009", 1)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"history URL " + other, cli.ExitError, "entity not found"},
		{"history URL 0x12", cli.ExitUsage, "want 0x and 64 hex digits"},
		{"history HEAD " + lamp, cli.ExitError, "layout simple keeps only the head"},
		{"diff URL 3 2", cli.ExitUsage, "block 3 is above block 2; give the earlier one first"},
		{"diff URL 3 7", cli.ExitError, "the head is 6"},
		{"diff URL 3 x", cli.ExitUsage, "x"},
		{"diff HEAD 3 6", cli.ExitError, "layout simple keeps only the head"},
		{"log HEAD", cli.ExitError, "layout simple keeps only the head"},
		{"log URL --to=7", cli.ExitError, "the head is 6"},
		{"log URL --from=3 --to=2", cli.ExitUsage, "--from 3 is above --to 2"},
		{"log URL --limit=-1", cli.ExitUsage, "want from 0"},
	} {
		args := strings.Fields(strings.NewReplacer("URL", dst, "HEAD", head).Replace(c.args))
		_, errs, code := varve(t, args...)
		require.Equal(t, c.code, code, "%s: %s", c.args, errs)
		require.Contains(t, errs, c.says, c.args)
	}
}

// TestLookBackPrunedAndRewound: of a pruned store the commands show what is left and refuse
// the rest, and a rewound block is gone.
func TestLookBackPrunedAndRewound(t *testing.T) {
	dst := url(t, "a.db")
	must(t, "import", exampleLines, dst)
	db, err := store.Open(t.Context(), dst, nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, ents.Rewind(t.Context(), 5))
	require.NoError(t, ents.Prune(t.Context(), 2))
	require.NoError(t, db.Close())
	out := columns(must(t, "history", dst, lamp))
	require.Equal(t, []string{"BLOCK", "3", "2"}, first(out), "the deletion of block 6 is gone")
	require.Contains(t, out[2], "2 oldest kept ")
	out = columns(must(t, "log", dst))
	require.Equal(t, []string{"BLOCK", "5", "3", "2", "the"}, first(out))
	require.Equal(t, "the changes of block 2 and of earlier ones were pruned", out[4])
	for _, args := range [][]string{{"diff", dst, "1", "5"}, {"log", dst, "--from=2"}} {
		_, errs, code := varve(t, args...)
		require.Equal(t, cli.ExitError, code)
		require.Contains(t, errs, "pruned")
	}
	require.Contains(t, must(t, "diff", dst, "2", "5"), "1 extended, 1 owner changed, 1 expired")
}

// TestLookBackWhileWritten: the commands read one state while a writer goes on, and walk over more
// blocks than are held at once. Half of the entities run out in other blocks than they began in.
func TestLookBackWhileWritten(t *testing.T) {
	const blocks = 2100
	dst := url(t, "a.db")
	db, err := store.Open(t.Context(), dst, nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	block := func(n uint64) entity.Block {
		ops := []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n), byte(n >> 8)}, BTL: 5 + n%2*1000}}
		kind := entity.Update
		if n == 1 {
			kind = entity.Create
		}
		ops = append(ops, entity.Op{Kind: kind, OpIndex: 1, Key: entity.Key{9, 9, 9}, BTL: entity.MaxBlock, NumericAttributes: map[string]uint64{"n": n}})
		return entity.Block{Number: n, Ops: ops}
	}
	_, err = ents.Load(t.Context(), func(yield func(entity.Block, error) bool) {
		for n := uint64(1); n <= blocks && yield(block(n), nil); n++ {
		}
	}, nil)
	require.NoError(t, err)
	ended, written := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for n := uint64(blocks + 1); err == nil; n++ {
			select {
			case <-ended:
				written <- nil
				return
			default:
			}
			_, err = ents.Apply(t.Context(), block(n))
		}
		written <- err
	}()
	history := columns(must(t, "history", dst, entity.Key{9, 9, 9}.String()))
	diff := must(t, "diff", dst, "1", fmt.Sprint(blocks))
	log := columns(must(t, "log", dst, "--to", fmt.Sprint(blocks), "--from=1500", "--limit=0"))
	close(ended)
	require.NoError(t, errors.Join(<-written, db.Close()))

	require.GreaterOrEqual(t, len(history), blocks+1)
	for i, row := range history[1:] {
		require.True(t, strings.HasPrefix(row, fmt.Sprint(len(history)-1-i)+" "), row)
	}
	// Alive at the end are the even ones of the last 5 blocks and the odd ones of the last 1005.
	require.Contains(t, diff, fmt.Sprintf("from block 1 to %d: %d created, 1 updated, 1 expired\n", blocks, 503+2))
	require.Len(t, log, 2+blocks-1500+1)
	require.Equal(t, "2100 - 1 1 0 0 0 1", log[1])
}
