package rpc

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a handler.
type metrics struct {
	calls    *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// unknown is the metric label of requests for methods that do not exist.
const unknown = "unknown"

func newMetrics(r prometheus.Registerer, h *Handler) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "varve_arkiv_calls_total", Help: "JSON-RPC calls that were answered; code 0 is no error.",
		}, []string{"method", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "varve_arkiv_call_seconds", Help: "Time to answer a JSON-RPC call, without sending the answer.",
			Buckets: prometheus.ExponentialBuckets(25e-6, 2, 18), // 25 µs to 3.3 s
		}, []string{"method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "varve_arkiv_calls_in_flight", Help: "JSON-RPC calls that are being answered."}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	for _, c := range []prometheus.Collector{
		m.calls, m.latency, m.inFlight,
		gauge("varve_arkiv_filters", "Filters that are installed.", h.filters.count),
		gauge("varve_arkiv_sockets", "WebSocket connections.", func() int { return len(h.sockets) }),
		gauge("varve_arkiv_subscriptions", "Subscriptions over WebSocket.", func() int { n, _ := h.notifications(); return n }),
		gauge("varve_arkiv_subscription_lag_blocks", "Blocks by which the slowest subscription is behind.",
			func() int { _, lag := h.notifications(); return lag }),
		gauge("varve_arkiv_head_block", "Number of the last block.", func() int { head, _ := h.heads.last(); return int(head.Number) }),
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	for name := range h.methods { // so that they are there from the start
		m.calls.WithLabelValues(name, "0")
		m.latency.WithLabelValues(name)
	}
	m.calls.WithLabelValues(unknown, "0")
	m.latency.WithLabelValues(unknown)
	return m, nil
}

func (m *metrics) end(method string, begun time.Time, code int) {
	m.inFlight.Dec()
	m.latency.WithLabelValues(method).Observe(time.Since(begun).Seconds())
	m.count(method, code)
}

func (m *metrics) count(method string, code int) {
	m.calls.WithLabelValues(method, strconv.Itoa(code)).Inc()
}
