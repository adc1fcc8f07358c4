package service

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/internal/build"
	"github.com/varvedb/varve/store/driver"
)

// askTimeout bounds what the store is asked for a scrape, so that a database that is down
// does not hold up the other counters.
const askTimeout = time.Second

// What is asked of the store. A value that it does not tell is left out.
var (
	backlogDesc    = desc("varve_compaction_backlog_changes", "Changes of entities that the layout has yet to compact.")
	eventHeadDesc  = desc("varve_event_head_position", "Position of the last event.")
	databaseDesc   = desc("varve_database_bytes", "Bytes of the database, without its log.")
	walDesc        = desc("varve_wal_bytes", "Bytes of the log that a recovery would read.")
	replicaLagDesc = desc("varve_replica_lag_seconds", "How far the replica that is read is behind.")
)

func desc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// storeMetrics are read from the store when they are asked for.
type storeMetrics struct{ service *Service }

// Describe implements prometheus.Collector.
func (m *storeMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backlogDesc, eventHeadDesc, databaseDesc, walDesc, replicaLagDesc} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (m *storeMetrics) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64) { c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	s := m.service
	if owed, err := s.ents.Owed(ctx); err == nil {
		gauge(backlogDesc, float64(owed))
	}
	if s.events != nil {
		if head, err := s.events.Head(ctx); err == nil {
			gauge(eventHeadDesc, float64(head))
		}
	}
	stats, err := s.db.Stats(ctx)
	if err != nil {
		return
	}
	if n := stats.DatabaseBytes; n != nil {
		gauge(databaseDesc, float64(*n))
	}
	if n := stats.WALBytes; n != nil {
		gauge(walDesc, float64(*n))
	}
	if lag := stats.ReplicaLag; lag != nil {
		gauge(replicaLagDesc, lag.Seconds())
	}
}

// buildInfo says what runs, as labels of a constant, which other series are joined with.
func buildInfo() prometheus.Collector {
	b := build.Read()
	labels := prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go, "engines": ""}
	var engines []string
	for _, d := range driver.Linked() {
		engines = append(engines, d.Name)
	}
	labels["engines"] = strings.Join(engines, ",")
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "varve_build_info", Help: "What runs; always 1.", ConstLabels: labels})
	info.Set(1)
	return info
}
