package main

import (
	"context"
	"fmt"
	neturl "net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/pgtest"
)

// mine is the name of a schema that is cut, for the names of others, within a character.
var mine = "Mine " + strings.Repeat("ä", 16)

// ownServer starts a server as a user would have one, with a schema that is not ours, and returns a
// URL of it with a password, which it does not ask for. In the end everything must be as it was.
func ownServer(t *testing.T) string {
	t.Helper()
	server, err := pgembed.Start(t.Context(), pgembed.Config{Dir: filepath.Join(t.TempDir(), "own")})
	require.NoError(t, err)
	url := pgtest.URL(server, pgembed.Database)
	pgtest.Exec(t, url, fmt.Sprintf(`CREATE SCHEMA %[1]q; CREATE TABLE %[1]q.kept (n bigint); INSERT INTO %[1]q.kept VALUES (7)`, mine))
	t.Cleanup(func() {
		require.Equal(t, "7", pgtest.Exec(t, url, fmt.Sprintf("SELECT n FROM %q.kept", mine)))
		require.Equal(t, mine+", public", pgtest.Exec(t, url, "SELECT string_agg(nspname, ', ' ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'"))
		require.Equal(t, "1", pgtest.Exec(t, url, "SELECT count(*) FROM pg_tables WHERE schemaname !~ '^pg_|^information_schema$'"))
		require.NoError(t, server.Stop(context.Background()))
	})
	return strings.Replace(url, "varve@", "varve:hush@", 1) + "&schema=" + neturl.QueryEscape(mine)
}

// TestMeasuredServer measures a server of the user's, each database in a new
// schema next to the existing ones.
func TestMeasuredServer(t *testing.T) {
	url := ownServer(t)
	t.Setenv(bench.CacheEnv, t.TempDir())
	t.Setenv("VARVE_MEASURED_SERVER", url)
	out := t.TempDir()
	must(t, "lab", "--experiment=C3", "--engine=postgres@localhost", "--out="+out, "--options="+tiny(t))
	for _, r := range lines(t, out) {
		require.Contains(t, string(r.Name), "/engine=postgres@localhost")
		for _, c := range r.Config {
			require.NotContains(t, string(c.Value), "hush")
		}
	}
}
