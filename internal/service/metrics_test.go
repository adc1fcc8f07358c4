package service_test

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
)

// TestMetrics: what is running, how far it is and what it has put off, in names that
// promtool has nothing against.
func TestMetrics(t *testing.T) {
	db := open(t, "sqlite:"+t.TempDir()+"/varve.db?durability=relaxed&layout=compact")
	s := start(t, db, service.Options{})
	scrape := func() string {
		rec := httptest.NewRecorder()
		s.Metrics().Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		return rec.Body.String()
	}
	before := scrape()
	_, err := s.Put(t.Context(), put(1, "one"))
	require.NoError(t, err)
	_, err = s.Events().Append(t.Context(), []store.Event{{Type: "A"}, {Type: "B"}}, nil)
	require.NoError(t, err)
	after := scrape()
	for name, text := range map[string]string{"before": before, "after": after} {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		require.NoError(t, err)
		require.Empty(t, problems, name)
		require.Contains(t, text, `goversion="`+runtime.Version()+`"`)
		require.Regexp(t, `varve_build_info\{engines="[^"]*sqlite[^"]*",.*\} 1\n`, text)
	}
	require.Contains(t, before, "\nvarve_event_head_position 0\n")
	require.Contains(t, after, "\nvarve_event_head_position 2\n")
	require.Contains(t, after, "\nvarve_head_block 1\n")
	require.Regexp(t, `\nvarve_compaction_backlog_changes \d`, after)
	require.Regexp(t, `\nvarve_wal_bytes [1-9]`, after)
	require.Regexp(t, `\nvarve_database_bytes [1-9]`, after)
	require.Regexp(t, `\nvarve_head_moved_timestamp_seconds [1-9]`, after)
	require.NotContains(t, after, "varve_replica_lag_seconds", "it reads no replica")
}
