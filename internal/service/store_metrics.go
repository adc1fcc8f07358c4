package service

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/varvedb/varve/internal/build"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// askTimeout bounds the store's part of a scrape, so that an unreachable
// database does not delay the other metrics.
const askTimeout = time.Second

// The metrics of the store. An unknown value is left out.
var (
	upDesc        = desc("varve_store_up", "Whether the store could be read: 1 or 0.")
	infoDesc      = prometheus.NewDesc("varve_store_info", "Which store is served; always 1.", []string{"engine", "layout"}, nil)
	entitiesDesc  = desc("varve_entities", "Entities at the head. They are counted again when that takes at most a hundredth of the time.")
	backlogDesc   = desc("varve_compaction_backlog_changes", "Changes of entities that the layout has yet to compact.")
	eventHeadDesc = desc("varve_event_head_position", "Position of the last event.")
	statistics    = []statistic{
		stat("varve_database_bytes", "Bytes of the database, without its log.", prometheus.GaugeValue, 1,
			func(s *driver.Stats) *int64 { return s.DatabaseBytes }),
		stat("varve_wal_bytes", "Bytes of the log that a recovery would read.", prometheus.GaugeValue, 1,
			func(s *driver.Stats) *int64 { return s.WALBytes }),
		stat("varve_replica_lag_seconds", "How far the replica that is read is behind.", prometheus.GaugeValue, time.Second,
			func(s *driver.Stats) *time.Duration { return s.ReplicaLag }),
		stat("varve_checkpoints_total", "Checkpoints of the log that moved something.", prometheus.CounterValue, 1,
			func(s *driver.Stats) *int64 { return s.Checkpoints }),
		stat("varve_checkpoint_seconds_total", "Time spent in checkpoints.", prometheus.CounterValue, time.Second,
			func(s *driver.Stats) *time.Duration { return s.CheckpointTime }),
		stat("varve_checkpoint_stall_seconds_total", "Time that commits waited for checkpoints.", prometheus.CounterValue, time.Second,
			func(s *driver.Stats) *time.Duration { return s.CheckpointStall }),
	}
)

func desc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// statistic is a counter of an engine; nil if the engine does not report it.
type statistic struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*driver.Stats) *float64
}

func stat[T ~int64](name, help string, kind prometheus.ValueType, unit T, of func(*driver.Stats) *T) statistic {
	return statistic{desc(name, help), kind, func(s *driver.Stats) *float64 {
		v := of(s)
		if v == nil {
			return nil
		}
		f := float64(*v) / float64(unit)
		return &f
	}}
}

// Observe registers the build and the store's state as metrics of a process;
// events may be nil.
func Observe(r prometheus.Registerer, db *store.DB, ents *store.Entities, events *store.Events) {
	r.MustRegister(&storeMetrics{db: db, ents: ents, events: events}, buildInfo(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// storeMetrics are read from the store at each scrape.
type storeMetrics struct {
	db     *store.DB
	ents   *store.Entities
	events *store.Events // nil: none

	mu       sync.Mutex // held while entities are counted
	entities uint64
	counted  error     // error of the last count
	next     time.Time // earliest time of the next count
}

// countShare is the minimum pause after a count, as a multiple of its duration,
// because some layouts read every row of a large store to count.
const countShare = 100

// count returns the number of entities at the head, or a recent number.
func (m *storeMetrics) count(ctx context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun := time.Now()
	if begun.Before(m.next) {
		return m.entities, m.counted
	}
	snap, err := m.ents.At(ctx, store.Head)
	if err == nil {
		m.entities, err = snap.Count(ctx, nil)
		err = errors.Join(err, snap.Close())
	}
	now := time.Now()
	m.counted, m.next = err, now.Add(countShare*now.Sub(begun))
	return m.entities, err
}

// Describe implements prometheus.Collector.
func (m *storeMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upDesc, infoDesc, entitiesDesc, backlogDesc, eventHeadDesc} {
		c <- d
	}
	for _, s := range statistics {
		c <- s.desc
	}
}

// Collect implements prometheus.Collector.
func (m *storeMetrics) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		c <- prometheus.MustNewConstMetric(d, kind, v)
	}
	if _, err := m.ents.Head(ctx); err != nil {
		value(upDesc, prometheus.GaugeValue, 0)
		return
	}
	value(upDesc, prometheus.GaugeValue, 1)
	c <- prometheus.MustNewConstMetric(infoDesc, prometheus.GaugeValue, 1, m.db.Engine().Info().Name, m.ents.Layout())
	if n, err := m.count(ctx); err == nil {
		value(entitiesDesc, prometheus.GaugeValue, float64(n))
	}
	if owed, err := m.ents.Backlog(ctx); err == nil {
		value(backlogDesc, prometheus.GaugeValue, float64(owed))
	}
	if m.events != nil {
		if head, err := m.events.Head(ctx); err == nil {
			value(eventHeadDesc, prometheus.GaugeValue, float64(head))
		}
	}
	stats, err := m.db.Engine().Stats(ctx)
	if err != nil {
		return
	}
	for _, s := range statistics {
		if v := s.of(&stats); v != nil {
			value(s.desc, s.kind, *v)
		}
	}
}

// buildInfo describes the program, as labels of a constant, for joins with
// other series.
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
