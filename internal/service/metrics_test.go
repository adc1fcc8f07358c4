package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/event"
)

// TestMetrics: versions, head and backlog, in names that promtool accepts.
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
	_, err = s.Events().Append(t.Context(), []event.Event{{Type: "A"}, {Type: "B"}}, nil)
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
	require.Regexp(t, `\nvarve_checkpoint_stall_seconds_total \d`, after)
	require.Contains(t, after, "\nvarve_store_up 1\n")
	require.NotContains(t, after, "varve_replica_lag_seconds", "it reads no replica")
	require.NoError(t, db.Close())
	require.Contains(t, scrape(), "\nvarve_store_up 0\n")
}

// TestSubscriberLag: the subscriber of a protocol that is furthest behind
// counts, from the first event that it lacks, without events that its query
// skips.
func TestSubscriberLag(t *testing.T) {
	s := start(t, fresh(t), service.Options{})
	lag := func(protocol string, subscribers, positions int) func() bool {
		return func() bool {
			rec := httptest.NewRecorder()
			s.Metrics().Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
			text := rec.Body.String()
			return strings.Contains(text, fmt.Sprintf("varve_subscribers{protocol=%q} %d\n", protocol, subscribers)) &&
				strings.Contains(text, fmt.Sprintf("varve_subscriber_lag_positions{protocol=%q} %d\n", protocol, positions))
		}
	}
	require.True(t, lag("rest", 0, 0)())
	for _, kind := range []string{"A", "B", "A", "A", "B", "B"} {
		_, err := s.Events().Append(t.Context(), []event.Event{{Type: kind}}, nil)
		require.NoError(t, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	follow := func(protocol, kind string, from uint64, send func() error) {
		running.Go(func() {
			sub := service.Subscription{Protocol: protocol, Query: event.Query{Items: []event.Item{{Types: []string{kind}}}}, From: from, Ending: context.Background()}
			err := s.Events().Follow(ctx, sub, func([]event.Sequenced) error { return send() })
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	wait := func(f func() bool) { t.Helper(); require.Eventually(t, f, 30*time.Second, time.Millisecond) }
	takes := make(chan struct{})
	follow("grpc", "A", 0, func() error { return nil })
	wait(lag("grpc", 1, 0)) // it has had the fourth, and lacks none of those after that
	follow("rest", "B", 1, func() error { <-takes; return nil })
	wait(lag("rest", 1, 5)) // it lacks the second and what comes after that
	follow("rest", "C", 0, func() error { return nil })
	follow("rest", "A", 1, func() error { <-takes; return nil })
	wait(lag("rest", 3, 6))
	follow("grpc", "A", 1000, func() error { return nil }) // from a future event on
	wait(lag("grpc", 2, 0))
	close(takes)
	wait(lag("rest", 3, 0))
	stop()
	running.Wait()
	require.True(t, lag("rest", 0, 0)())
}
