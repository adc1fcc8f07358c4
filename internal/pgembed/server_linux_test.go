package pgembed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// start starts a server that is stopped when the test ends, and fails the test if anything of it is left then.
func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Stop(context.Background()))
		requireNothingLeft(t, s.cfg.Dir)
	})
	return s
}

// requireNothingLeft checks that no process works in the directory and that no socket is there.
func requireNothingLeft(t *testing.T, dir string) {
	t.Helper()
	require.Empty(t, workersIn(filepath.Join(dir, "data")))
	require.Empty(t, workersIn(filepath.Join(dir, "data.part")))
	_, err := os.Lstat(filepath.Join(dir, "socket"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func connect(t *testing.T, s *Server) *pgconn.PgConn {
	t.Helper()
	cfg, err := s.ConnConfig()
	require.NoError(t, err)
	conn, err := pgconn.ConnectConfig(t.Context(), &cfg.Config)
	require.NoError(t, err)
	return conn
}

// query runs a simple query and returns the first value of its first row.
func query(t *testing.T, s *Server, sql string) string {
	t.Helper()
	conn := connect(t, s)
	defer conn.Close(context.Background())
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err)
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0])
	}
	return ""
}

// template is a data directory that was made once, by initDir.
var template = struct {
	sync.Once
	dir string
}{}

// madeDir returns a directory whose server has been made and stopped.
func madeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	return initDir(t, dir)
}

// initDir copies a data directory into dir: initdb syncs, which takes longest.
func initDir(t *testing.T, dir string) string {
	t.Helper()
	template.Do(func() {
		// It outlives this test; TestMain removes it.
		base, err := os.MkdirTemp("", "pgembed-template-")
		require.NoError(t, err)
		s, err := Start(t.Context(), Config{Dir: base})
		require.NoError(t, err)
		require.NoError(t, s.Stop(t.Context()))
		template.dir = base
	})
	require.NotEmpty(t, template.dir, "no template could be made")
	data := filepath.Join(dir, "data")
	require.NoError(t, os.CopyFS(data, os.DirFS(filepath.Join(template.dir, "data"))))
	require.NoError(t, os.Chmod(data, 0o700))
	return dir
}

func TestRestartKeepsData(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755)) // an empty one is made
	s := start(t, Config{Dir: dir})
	require.Greater(t, len(s.PIDs()), 1)
	query(t, s, "CREATE TABLE t (n bigint); INSERT INTO t VALUES (42)")
	require.NoError(t, s.Stop(t.Context()))
	require.Empty(t, s.PIDs())
	requireNothingLeft(t, dir)
	require.NoError(t, s.Stop(t.Context()), "a second Stop")

	s = start(t, Config{Dir: dir})
	require.Equal(t, "42", query(t, s, "SELECT n FROM t"))
	log, err := os.ReadFile(s.cfg.logPath())
	require.NoError(t, err)
	require.NotContains(t, string(log), "automatic recovery", "it was shut down in order")
	require.NotContains(t, string(log), "invalid")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	s := start(t, Config{Dir: dir, Settings: []driver.Setting{
		{Name: "synchronous_commit", Value: "off"},
		{Name: "application_name", Value: "a b=c 'd'"},
	}})
	for name, want := range map[string]string{
		"synchronous_commit":      "off",
		"application_name":        "a b=c 'd'",
		"listen_addresses":        "",
		"unix_socket_permissions": "0700",
		"data_checksums":          "on",
		"fsync":                   "on",
		"server_encoding":         "UTF8",
		"TimeZone":                "UTC",
		"unix_socket_directories": s.SocketDir(),
	} {
		require.Equal(t, want, query(t, s, "SHOW "+name), name)
	}
	require.Equal(t, "C", query(t, s, "SELECT datcollate FROM pg_database WHERE datname = current_database()"))
	require.NoError(t, s.Stop(t.Context()))

	s = start(t, Config{Dir: dir})
	require.Equal(t, "on", query(t, s, "SHOW synchronous_commit"), "a setting holds for one start")
}

// TestEnvironmentIsIgnored: nothing of the environment reaches the server, initdb or a
// connection to the server, be it wrong or something else that works.
func TestEnvironmentIsIgnored(t *testing.T) {
	files := t.TempDir()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	t.Setenv("XDG_CACHE_HOME", cache) // where HOME has it
	for name, value := range map[string]string{
		"PGSERVICE": "theirs", "PGSERVICEFILE": "/nowhere", "PGOPTIONS": "-c synchronous_commit=off",
		"PGHOST": "/nowhere", "PGPORT": "1", "PGDATABASE": "none", "PGUSER": "nobody", "PGPASSWORD": "x", "PGPASSFILE": files, "PGAPPNAME": "x",
		"PGSSLMODE": "verify-full", "PGSSLCERT": files, "PGSSLKEY": files, "PGSSLROOTCERT": files, "PGSSLCERTMODE": "wrong", "PGSSLNEGOTIATION": "wrong",
		"PGCONNECT_TIMEOUT": "wrong", "PGTARGETSESSIONATTRS": "standby", "PGTZ": "Asia/Tokyo", "PGREQUIREAUTH": "wrong",
		"PGMINPROTOCOLVERSION": "wrong", "PGMAXPROTOCOLVERSION": "wrong", "PGCHANNELBINDING": "require",
		"PGDATA": "/nowhere", "TZ": "Asia/Tokyo", "LC_ALL": "xx_XX", "LC_COLLATE": "xx_XX", "LANG": "xx_XX", "LANGUAGE": "xx", "HOME": files,
	} {
		t.Setenv(name, value)
	}
	s := start(t, Config{Dir: t.TempDir()})
	for name, want := range map[string]string{
		"synchronous_commit": "on", "application_name": "", "TimeZone": "UTC", "log_timezone": "UTC", "lc_messages": "C",
	} {
		require.Equal(t, want, query(t, s, "SHOW "+name), name)
	}
	require.Equal(t, "varve varve", query(t, s, "SELECT current_user || ' ' || current_database()"))
	for _, pid := range s.PIDs() {
		environment, err := os.ReadFile(procFile(pid, "environ"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a worker that has ended
		}
		require.NoError(t, err)
		require.NotContains(t, string(environment), "nowhere")
	}
}

func TestStopWithoutTimeRecovers(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	s := start(t, Config{Dir: dir})
	query(t, s, "CREATE TABLE t (n bigint); INSERT INTO t VALUES (42)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Stop(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "stopped without a checkpoint")
	requireNothingLeft(t, dir)

	s = start(t, Config{Dir: dir})
	require.Equal(t, "42", query(t, s, "SELECT n FROM t"))
}

func TestStopEndsOpenConnections(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: madeDir(t)})
	conn := connect(t, s)
	defer conn.Close(context.Background())
	_, err := conn.Exec(t.Context(), "BEGIN; CREATE TABLE t (n bigint)").ReadAll()
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))
}

func TestStopTellsOfAnEndedServer(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	s, err := Start(t.Context(), Config{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, s.proc.cmd.Process.Kill())
	<-s.proc.done
	err = s.Stop(t.Context())
	require.ErrorContains(t, err, "ended by itself")
	require.ErrorContains(t, err, "killed")
	requireNothingLeft(t, dir)
	start(t, Config{Dir: dir})
}

func TestSocketDirs(t *testing.T) {
	long := strings.Repeat("long", 20)
	for name, tc := range map[string]struct {
		sub  string
		temp bool
	}{
		"short":   {sub: "s"},
		"long":    {sub: filepath.Join(long, long), temp: true},
		"special": {sub: "it's a,b", temp: true},
		"unicode": {sub: "ä"},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			base, err := os.MkdirTemp("/tmp", "")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
			dir := filepath.Join(base, tc.sub)
			initDir(t, dir)

			s := start(t, Config{Dir: dir})
			require.Equal(t, "1", query(t, s, "SELECT 1"))
			require.Equal(t, tc.temp, filepath.Dir(s.SocketDir()) != dir)
			info, err := os.Stat(s.SocketDir())
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
			require.NoError(t, s.Stop(t.Context()))
			require.NoDirExists(t, s.SocketDir())
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
