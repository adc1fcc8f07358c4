// Package top shows what a running service does, from its /metrics, as it does it.
package top

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Source is where metrics are.
type Source struct {
	URL   string // of the service
	Token string // that it wants, if any
}

// sample is all metrics at a time.
type sample struct {
	at   time.Time
	data map[string]*dto.MetricFamily
}

// read asks for a sample.
func (s Source) read(ctx context.Context) (*sample, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(strings.TrimSuffix(s.URL, "/"), "/metrics")+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // as much as there is
		return nil, fmt.Errorf("%s: %s: %s", r.URL, answer.Status, strings.TrimSpace(string(text)))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	data, err := parser.TextToMetricFamilies(answer.Body)
	if err == nil && data["varve_requests_in_flight"] == nil {
		err = fmt.Errorf("%s: no metrics of varve serve", r.URL)
	}
	return &sample{at: time.Now(), data: data}, err
}

// value is a gauge or a counter without labels, NaN when there is none.
func (s *sample) value(name string) float64 {
	for _, m := range s.data[name].GetMetric() {
		return m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return math.NaN()
}

// labels are those of the first of a name.
func (s *sample) labels(name string) map[string]string {
	all := map[string]string{}
	if list := s.data[name].GetMetric(); len(list) > 0 {
		for _, l := range list[0].GetLabel() {
			all[l.GetName()] = l.GetValue()
		}
	}
	return all
}

// times are what a histogram counted between two samples: how many, their sum, and by
// the upper ends of its buckets.
type times struct {
	label  string // of the protocol and operation
	count  float64
	sum    float64
	bounds []float64
	counts []float64 // up to each bound
}

// between returns the histograms of a name, without what was counted before.
func between(before, now *sample, name string) (list []times) {
	for _, m := range now.data[name].GetMetric() {
		t := timesOf(m)
		for _, old := range before.data[name].GetMetric() {
			if o := timesOf(old); o.label == t.label && len(o.counts) == len(t.counts) && o.count <= t.count {
				t.count, t.sum = t.count-o.count, t.sum-o.sum
				for i := range t.counts {
					t.counts[i] -= o.counts[i]
				}
			}
		}
		list = append(list, t)
	}
	return list
}

func timesOf(m *dto.Metric) times {
	var t times
	for _, l := range m.GetLabel() {
		t.label = strings.TrimSpace(l.GetValue() + " " + t.label) // the protocol before the operation
	}
	h := m.GetHistogram()
	t.count, t.sum = float64(h.GetSampleCount()), h.GetSampleSum()
	for _, b := range h.GetBucket() {
		t.bounds = append(t.bounds, b.GetUpperBound())
		t.counts = append(t.counts, float64(b.GetCumulativeCount()))
	}
	return t
}

// quantile returns the upper end of the bucket that has it, NaN when nothing was counted.
func (t *times) quantile(q float64) float64 {
	if t.count == 0 {
		return math.NaN()
	}
	i := slices.IndexFunc(t.counts, func(n float64) bool { return n >= q*t.count })
	if i < 0 {
		return math.Inf(1)
	}
	return t.bounds[i]
}
