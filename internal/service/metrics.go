package service

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the counters of a service, in a separate registry.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	inFlight prometheus.Gauge

	hits, misses prometheus.Counter
	sealed       prometheus.Counter
	group        prometheus.Histogram
	commit       prometheus.Histogram
}

// newMetrics returns counters at zero.
func newMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "varve_requests_total", Help: "Requests that were answered.",
		}, []string{"protocol", "operation", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "varve_request_seconds", Help: "Time from a request's head to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(25e-6, 2, 18), // 25 µs to 3.3 s
		}, []string{"protocol", "operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "varve_requests_in_flight", Help: "Requests that are being answered."}),
		hits:     prometheus.NewCounter(prometheus.CounterOpts{Name: "varve_cache_hits_total", Help: "Gets that the cache answered."}),
		misses:   prometheus.NewCounter(prometheus.CounterOpts{Name: "varve_cache_misses_total", Help: "Gets that went to the store."}),
		sealed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "varve_sealed_total", Help: "Payloads sealed since the start; rotate a key before it has sealed 2^32.",
		}),
		group: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "varve_block_writes", Help: "Writes that shared a block.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "varve_block_seconds", Help: "Time to apply and commit a block.", Buckets: prometheus.ExponentialBuckets(25e-6, 2, 18),
		}),
	}
	m.registry.MustRegister(m.requests, m.latency, m.inFlight, m.hits, m.misses, m.sealed, m.group, m.commit)
	return m
}

// observe adds metrics that are computed from the service's state.
func (m *Metrics) observe(s *Service) {
	for name, gauge := range map[string]struct {
		help  string
		value func() float64
	}{
		"varve_head_block":                   {"Number of the last block.", func() float64 { return float64(s.Head()) }},
		"varve_head_age_seconds":             {"Time since the service last looked at the head.", func() float64 { return s.head.age().Seconds() }},
		"varve_head_moved_timestamp_seconds": {"When the last block was made, or was first seen.", func() float64 { return float64(s.head.lastMove.Load()) / 1e9 }},
		"varve_cache_bytes":                  {"Bytes of the cached entities, estimated.", func() float64 { return float64(s.cache.bytes()) }},
		"varve_queued_writes":                {"Writes that wait for a block.", func() float64 { return float64(len(s.queue)) }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: gauge.help}, gauge.value))
	}
	Observe(m.registry, s.db, s.ents, s.events)
	if s.events != nil {
		m.registry.MustRegister(&subscriberMetrics{s.events, &s.subscribers})
	}
}

// Registry returns the registry, for counters of other handlers in the process.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Handler serves the counters in Prometheus' text form.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Operation counts the requests of one operation of a protocol.
type Operation struct {
	metrics  *Metrics
	requests *prometheus.CounterVec
	latency  prometheus.Observer
}

// Operation returns the counters of an operation. The counter for its usual
// code exists from the start.
func (m *Metrics) Operation(protocol, name string, usual int) *Operation {
	requests := m.requests.MustCurryWith(prometheus.Labels{"protocol": protocol, "operation": name})
	requests.WithLabelValues(strconv.Itoa(usual))
	return &Operation{m, requests, m.latency.WithLabelValues(protocol, name)}
}

// Begin counts the beginning of a request and returns the time.
func (o *Operation) Begin() time.Time {
	o.metrics.inFlight.Inc()
	return time.Now()
}

// End counts the end of a request, with a code of its protocol.
func (o *Operation) End(begun time.Time, code int) {
	o.metrics.inFlight.Dec()
	o.latency.Observe(time.Since(begun).Seconds())
	o.requests.WithLabelValues(strconv.Itoa(code)).Inc()
}
