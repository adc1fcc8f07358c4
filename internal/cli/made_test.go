package cli_test

import (
	"archive/tar"
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestTakenBack: a command that fails leaves no store that it has made and put nothing into,
// and one that was there or has something in it stays.
func TestTakenBack(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.tar")
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "block-1.json.zst", Size: 3, Mode: 0o600}))
	_, err := w.Write([]byte("bad"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(bad, text.Bytes(), 0o600))
	wrong := filepath.Join(dir, "wrong.jsonl")
	require.NoError(t, os.WriteFile(wrong, []byte("{\"type\":\n"), 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()

	path := filepath.Join(dir, "new.db")
	url := "sqlite:" + path
	run := func(args ...string) string {
		var out, errs bytes.Buffer
		require.NotZero(t, cli.Run(t.Context(), args, &out, &errs), "%v", args)
		return errs.String()
	}
	commands := [][]string{
		{"import", bad, url},
		{"scale", bad, url},
		{"events", "append", url, wrong},
		{"events", "import", url, wrong},
		{"serve", url, "--plaintext", "--listen", taken.Addr().String(), "--grpc=off"},
	}
	for _, args := range commands {
		said := run(args...)
		left, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Empty(t, left, "%v: %s", args, said)
	}
	good := filepath.Join("..", "..", "testdata", "arkiv-small", "blocks.tar")
	var out, errs bytes.Buffer
	require.Zero(t, cli.Run(t.Context(), []string{"import", good, url + "?layout=compact"}, &out, &errs), errs.String())
	for _, args := range commands {
		run(args...)
		require.FileExists(t, path)
	}
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
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
	var out, errs bytes.Buffer
	require.Zero(t, cli.Run(t.Context(), []string{"query", url, "n = 7", "--count"}, &out, &errs), errs.String())
	require.Equal(t, "1\n", out.String())
}
