package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/store"
)

// written makes a store with an entity in each of some blocks, and returns the head at
// each.
func written(t *testing.T, url string, blocks uint64) (heads []store.BlockHead) {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), store.EntityOptions{})
	require.NoError(t, err)
	for n := range blocks {
		_, err := ents.Apply(t.Context(), store.Block{Number: n, Ops: []store.Op{{Kind: store.Create, Key: store.Key{byte(n)}, BTL: 5, Content: []byte("content")}}})
		require.NoError(t, err)
		head, err := ents.Head(t.Context())
		require.NoError(t, err)
		heads = append(heads, head)
	}
	return heads
}

// TestRestoreAt: a backup becomes the store as it was at a block, which the check after it
// agrees with; what cannot be had leaves nothing.
func TestRestoreAt(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv", "simple"} {
		t.Run(layout, func(t *testing.T) {
			dir := t.TempDir()
			src, backup := "sqlite:"+filepath.Join(dir, "a.db")+"?layout="+layout, filepath.Join(dir, "bk")
			heads := written(t, src, 20)
			code, _, errs := varve("backup", src, backup, "--no-verify")
			require.Equal(t, cli.ExitOK, code, errs)
			code, _, errs = varve("restore", backup, "sqlite:"+filepath.Join(dir, "no.db"), "--at=20")
			require.Equal(t, cli.ExitError, code)
			require.Contains(t, errs, "the backup has blocks 0 to 19")
			code, out, errs := varve("restore", backup, "sqlite:"+filepath.Join(dir, "b.db"), "--at=12")
			if layout == "simple" {
				require.Equal(t, cli.ExitError, code)
				require.Contains(t, errs, "keeps no history")
			} else {
				require.Equal(t, cli.ExitOK, code, errs)
				require.Contains(t, out, "up to block 12, digest "+heads[12].Digest.String())
				code, out, errs = varve("check", "sqlite:"+filepath.Join(dir, "b.db"))
				require.Equal(t, cli.ExitOK, code, errs)
				require.Contains(t, out, "digests computed anew")
			}
			made := map[string]bool{"no.db": false, "b.db": layout != "simple"}
			for name, want := range made {
				left, err := filepath.Glob(filepath.Join(dir, name+"*"))
				require.NoError(t, err)
				require.Equal(t, want, len(left) > 0, "%v", left)
			}
		})
	}
}

// TestBackupEvery: backups follow one another until the interrupt, the newest are kept, each
// can be restored, and nothing half is there, not what a killed process has left either.
func TestBackupEvery(t *testing.T) {
	root := t.TempDir()
	src, dir := "sqlite:"+filepath.Join(root, "a.db")+"?layout=compact", filepath.Join(root, "backups")
	written(t, src, 5)
	for _, left := range []string{".20260101T000000.000Z-123", ".varve-verify-123", "mine", ".mine-1"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, left), 0o755))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errs clitest.Output
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{"backup", src, dir, "--every=10ms", "--keep=2"}, &out, &errs)
	}()
	require.Eventually(t, func() bool { return strings.Count(out.String(), "\n") >= 4 || len(code) > 0 }, time.Minute, 5*time.Millisecond)
	again, _, said := varve("backup", src, dir, "--every=1h")
	require.Equal(t, cli.ExitError, again)
	require.Contains(t, said, "another process makes backups")
	interrupt()
	require.Equal(t, cli.ExitOK, <-code, errs.String())

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Len(t, names, 4, "two of ours, and what is not ours")
	require.Subset(t, names, []string{"mine", ".mine-1"})
	code2, _, said := varve("restore", filepath.Join(dir, names[2]), "sqlite:"+filepath.Join(root, "b.db"))
	require.Equal(t, cli.ExitOK, code2, said)
	beside, err := filepath.Glob(filepath.Join(root, "*-lease"))
	require.NoError(t, err)
	require.Empty(t, beside)
	for _, args := range [][]string{{"--keep=1"}, {"--every=-1s"}, {"--every=1s", "--keep=-1"}} {
		wrong, _, _ := varve(append([]string{"backup", src, dir}, args...)...)
		require.Equal(t, cli.ExitUsage, wrong, args)
	}
}
