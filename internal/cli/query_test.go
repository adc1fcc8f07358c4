package cli_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestQueryOrder sorts by attributes as the command line spells them.
func TestQueryOrder(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "q.db")
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	b := entity.Block{Number: 1}
	for i, values := range []struct {
		dc    string
		price uint64
	}{{"x", 1}, {"y", 2}, {"x", 3}} {
		b.Ops = append(b.Ops, entity.Op{
			Kind: entity.Create, Key: entity.Key{31: byte(i + 1)}, OpIndex: uint32(i), BTL: 9,
			StringAttributes:  map[string]string{"dc": values.dc, "a,b:c": values.dc},
			NumericAttributes: map[string]uint64{"price": values.price},
		})
	}
	_, err = ents.Apply(t.Context(), b)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	for args, want := range map[string]string{
		"":                             "321",
		"--order-by=$key":              "123",
		"--order-by=$key --desc":       "321",
		"--order-by=$key:string":       "123",
		"--order-by=price:number":      "123",
		"--order-by=price:number:desc": "321",
		"--order-by=dc:string --order-by=price:number":            "132",
		"--order-by=dc:string:desc --order-by=price:number":       "213",
		"--order-by=dc:string:asc --order-by=price:number --desc": "312",
		"--order-by=a,b:c:string:desc --order-by=$createdAtBlock": "231",
	} {
		code, out, errs := varve(append([]string{"query", url, "*", "--keys"}, strings.Fields(args)...)...)
		require.Equal(t, cli.ExitOK, code, errs)
		got := ""
		for line := range strings.Lines(out) {
			got += strings.TrimSpace(line)[65:]
		}
		require.Equal(t, want, got, args)
	}
	for args, says := range map[string]string{
		"--desc":                     "--desc needs --order-by",
		"--order-by=price":           "price:number or price:string",
		"--order-by=price:desc":      "price:number or price:string",
		"--order-by=price:numeric":   "price:numeric:number",
		"--order-by=:number":         "without an attribute",
		"--order-by=$key:number":     "not of the kind",
		"--order-by=$key,$owner":     "$key,$owner:number",
		"--order-by=$a:string":       "unknown attribute $a",
		"--order-by=$key,price:asc":  "say whether",
		"--order-by=$key:desc:asc":   "say whether",
		"--order-by=$key --limit=-1": "want from 0",
	} {
		code, _, errs := varve(append([]string{"query", url, "*"}, strings.Fields(args)...)...)
		require.NotEqual(t, cli.ExitOK, code, args)
		require.Contains(t, errs, says, args)
	}
	code, _, errs := varve("query", url, "*", "--order-by=$key", "--order-by=$key:desc")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, `sorted by "$key" twice`)
}

// TestQueryBesideLoad: a store whose indexes are still to be made is read without them.
func TestQueryBesideLoad(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), &store.EntityOptions{DeferIndexes: true})
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 1, Ops: []entity.Op{{Kind: entity.Create, BTL: 9, NumericAttributes: map[string]uint64{"n": 7}}}})
	require.NoError(t, err)
	require.Equal(t, "1\n", must(t, "query", url, "n = 7", "--count"))
}

// TestQueryStreams: rows are printed while others are read, so that a large
// result is never in memory.
func TestQueryStreams(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	block := entity.Block{Number: 1}
	for n := range 1000 {
		block.Ops = append(block.Ops, entity.Op{Kind: entity.Create, OpIndex: uint32(n), Key: entity.Key{byte(n), byte(n >> 8)}, BTL: 100})
	}
	_, err = ents.Apply(t.Context(), block)
	require.NoError(t, errors.Join(err, db.Close()))
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	first := writerFunc(func(p []byte) (int, error) { stop(); return out.Write(p) })
	require.NotEqual(t, cli.ExitOK, cli.Run(ctx, []string{"query", url, "*"}, first, &errs))
	require.Less(t, bytes.Count(out.Bytes(), []byte("\n")), 1000, "all were read before the first was printed")
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
