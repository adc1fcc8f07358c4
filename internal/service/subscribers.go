package service

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// subscriber is a client that follows events.
type subscriber struct {
	protocol string
	query    event.Query
	has      atomic.Uint64 // the position up to which it has received all events
}

// lag returns how many positions a subscriber is behind a head, counted from
// the first event it has yet to receive. Events that its query does not select
// are skipped, which only the store can tell; if the store fails, lag returns
// the largest number.
func (f *subscriber) lag(ctx context.Context, events *store.Events, head uint64) uint64 {
	has := f.has.Load()
	if has >= head {
		return 0
	}
	for e, err := range events.Read(ctx, f.query, &event.ReadOptions{From: has + 1, Limit: 1}) {
		switch {
		case err != nil:
			return head - has
		case e.Position <= head:
			return head - e.Position + 1
		}
	}
	f.has.CompareAndSwap(has, head) // so that the next call starts after these events
	return 0
}

var (
	subscribersDesc = prometheus.NewDesc("varve_subscribers", "Clients that follow the events.", []string{"protocol"}, nil)
	lagDesc         = prometheus.NewDesc("varve_subscriber_lag_positions",
		"Positions from the first event that a subscriber has yet to get to the head, of the one that is furthest behind.", []string{"protocol"}, nil)
)

// subscriberMetrics are computed from the subscribers at each scrape.
type subscriberMetrics struct {
	events *store.Events
	list   *sync.Map // of *subscriber
}

// Describe implements prometheus.Collector.
func (m *subscriberMetrics) Describe(c chan<- *prometheus.Desc) { c <- subscribersDesc; c <- lagDesc }

// Collect implements prometheus.Collector.
func (m *subscriberMetrics) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	head, err := m.events.Head(ctx)
	if err != nil {
		return
	}
	count, most := map[string]int{"rest": 0, "grpc": 0}, map[string]uint64{}
	for f := range m.list.Range {
		f := f.(*subscriber)
		count[f.protocol]++
		most[f.protocol] = max(most[f.protocol], f.lag(ctx, m.events, head))
	}
	for protocol, n := range count {
		c <- prometheus.MustNewConstMetric(subscribersDesc, prometheus.GaugeValue, float64(n), protocol)
		c <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(most[protocol]), protocol)
	}
}
