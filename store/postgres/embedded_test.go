package postgres

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/store/driver"
)

// template is a directory in which a server has been made, by madeDir. TestMain removes it.
var template struct {
	sync.Once
	dir string
}

// madeDir returns a copy of it: to make one takes long.
func madeDir(t *testing.T) string {
	t.Helper()
	template.Do(func() {
		base, err := os.MkdirTemp("", "postgres-template-")
		require.NoError(t, err)
		template.dir = base
		server, err := pgembed.Start(t.Context(), pgembed.Config{Dir: base})
		require.NoError(t, err)
		require.NoError(t, server.Stop(t.Context()))
	})
	return copyDir(t, template.dir, filepath.Join(t.TempDir(), "pg"))
}

// copyDir copies the data of a server that does not run.
func copyDir(t *testing.T, from, to string) string {
	t.Helper()
	data := filepath.Join(to, "data")
	require.NoError(t, os.CopyFS(data, os.DirFS(filepath.Join(from, "data"))))
	require.NoError(t, os.Chmod(data, 0o700))
	return to
}

// requireStopped checks that processes have ended and that the socket is gone.
func requireStopped(t *testing.T, dir string, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d", pid)
	}
	require.NoFileExists(t, filepath.Join(dir, "data", "postmaster.pid"))
	require.NoDirExists(t, filepath.Join(dir, "socket"))
}

// TestEmbedded makes a directory and opens it again at every durability level and for reading.
func TestEmbedded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	_, err := openURL("postgres://"+dir, readOnly)
	require.ErrorIs(t, err, driver.ErrNotExist)
	require.NoDirExists(t, dir)

	e, err := openURL("postgres://"+dir, nil)
	require.NoError(t, err)
	require.Equal(t, "postgres", e.Info().Name)
	require.Contains(t, e.Info().Version, pgembed.Major+".")
	require.False(t, e.Capabilities().MultiProcess)
	execute(t, e, createAll)
	write(t, e, func(ctx context.Context, tx driver.Tx) { require.NoError(t, tx.Insert(ctx, all, makeRows(1000))) })
	requireSettings(t, e, map[string]string{
		"durability": "durable", "embedded": "true", "memory": "268435456",
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_sync_method": "fsync",
		"shared_buffers": "128MB", "effective_cache_size": "256MB", "work_mem": "8MB", "maintenance_work_mem": "32MB",
		"autovacuum": "on", "vacuum_truncate": "off", "jit": "off", "data_checksums": "on", "server_encoding": "UTF8",
	})
	s, err := e.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, e.server.PIDs(), s.EnginePIDs)
	require.Greater(t, len(s.EnginePIDs), 1)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	requireStopped(t, dir, s.EnginePIDs)

	for d, want := range map[driver.Durability][2]string{driver.Relaxed: {"on", "off"}, driver.Unsafe: {"off", "off"}} {
		e := openTest(t, "postgres://"+dir, func(o *driver.Options) { o.Durability, o.Memory, o.Readers = d, 1<<20, 1 })
		require.Contains(t, e.Capabilities().Durabilities, d)
		requireSettings(t, e, map[string]string{
			"durability": string(d), "fsync": want[0], "full_page_writes": want[0], "synchronous_commit": want[1],
			"shared_buffers": "1MB", "work_mem": "1MB", "memory": "1048576",
		})
		require.EqualValues(t, 1000, count(t, e, "t"))
		require.NoError(t, e.Close())
	}

	e = openTest(t, "postgres://"+dir, readOnly)
	require.EqualValues(t, 1000, count(t, e, "t"))
	_, err = e.Begin(t.Context())
	require.ErrorIs(t, err, driver.ErrReadOnly)
}

func requireSettings(t *testing.T, e driver.Engine, want map[string]string) {
	t.Helper()
	got := settings(t, e)
	for name, value := range want {
		require.Equal(t, value, got[name], name)
	}
}

// TestFailedOpen leaves nothing, before the server has been started and after.
func TestFailedOpen(t *testing.T) {
	dir := madeDir(t)
	url := "postgres://" + dir
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		url    string
		ctx    context.Context
		change func(*driver.Options)
		want   error
		text   string
	}{
		"unknown parameter":  {url: url + "?colour=red", text: "parameter colour: unknown"},
		"checkpoint policy":  {url: url, change: func(o *driver.Options) { o.Checkpoint = driver.Background }, want: driver.ErrUnsupported},
		"checkpoint frames":  {url: url, change: func(o *driver.Options) { o.WALFrames = 1 }, want: driver.ErrUnsupported},
		"cancelled":          {url: url, ctx: cancelled, want: context.Canceled},
		"not a directory":    {url: "postgres:/dev/null", text: "/dev/null"},
		"no binaries":        {url: url + "?bin_dir=/nonexistent", text: "/nonexistent"},
		"missing schema":     {url: url + "?schema=x", change: readOnly, want: driver.ErrNotExist},
		"schema not allowed": {url: url + "?schema=pg_x", text: "pg_x"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.ctx != nil {
				ctx = c.ctx
			}
			_, err := openContext(ctx, c.url, c.change)
			require.ErrorContains(t, err, c.text)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			requireStopped(t, dir, nil)
		})
	}
	openTest(t, url, nil)
}
