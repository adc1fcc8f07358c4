package stat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
)

func measured(engine, aa string, repeat int, metrics ...result.Metric) result.Record {
	r := result.Record{Experiment: "D1", Name: "Commit", Repeat: repeat, Metrics: metrics}
	r.Config = result.Config{{Key: "engine", Value: engine}}
	if aa != "" {
		r.Config = r.Config.With(result.AAKey, aa)
	}
	return r
}

// What two measurements of the same in one block are apart is noise, the largest of
// a unit counts, and what was not measured twice is not known.
func TestNoise(t *testing.T) {
	ms := func(v float64) result.Metric { return result.Metric{Unit: "p99-ms", Value: v} }
	rate := func(v float64) result.Metric { return result.Metric{Unit: "rows/s", Value: v} }
	failed := measured("sqlite", "2", 0, ms(900))
	failed.Error = "killed"
	tests := []struct {
		name    string
		records []result.Record
		want    map[string]float64
	}{
		{"nothing", nil, map[string]float64{}},
		{"once", []result.Record{measured("sqlite", "", 0, ms(1)), measured("sqlite", "", 1, ms(2))}, map[string]float64{}},
		{"twice", []result.Record{measured("sqlite", "2", 0, ms(12)), measured("sqlite", "", 0, ms(10), rate(7))}, map[string]float64{"p99-ms": 0.2}},
		{"named both", []result.Record{measured("sqlite", "1", 0, ms(10)), measured("sqlite", "2", 0, ms(8))}, map[string]float64{"p99-ms": 0.25}},
		{"the same", []result.Record{measured("sqlite", "", 0, ms(10)), measured("sqlite", "2", 0, ms(10))}, map[string]float64{"p99-ms": 0}},
		{"the largest", []result.Record{
			measured("sqlite", "", 0, ms(10), rate(100)), measured("sqlite", "2", 0, ms(11), rate(300)),
			measured("duckdb", "", 0, ms(10), rate(100)), measured("duckdb", "2", 0, ms(15), rate(100)),
		}, map[string]float64{"p99-ms": 0.5, "rows/s": 2}},
		{"medians of several blocks", []result.Record{
			measured("sqlite", "", 0, ms(10)), measured("sqlite", "2", 0, ms(20)),
			measured("sqlite", "", 1, ms(10)), measured("sqlite", "2", 1, ms(11)),
			measured("sqlite", "", 2, ms(10)), measured("sqlite", "2", 2, ms(5)),
		}, map[string]float64{"p99-ms": 0.1}},
		{"another block", []result.Record{measured("sqlite", "", 0, ms(10)), measured("sqlite", "", 1, ms(90)), measured("sqlite", "2", 0, ms(20))}, map[string]float64{"p99-ms": 1}},
		{"not of the same block", []result.Record{measured("sqlite", "", 0, ms(10)), measured("sqlite", "2", 1, ms(20))}, map[string]float64{}},
		{"another configuration", []result.Record{measured("duckdb", "", 0, ms(10)), measured("sqlite", "2", 0, ms(20))}, map[string]float64{}},
		{"failed", []result.Record{measured("sqlite", "", 0, ms(10)), failed}, map[string]float64{}},
		{"from nothing", []result.Record{measured("sqlite", "", 0, ms(0)), measured("sqlite", "2", 0, ms(10))}, map[string]float64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := stat.Noise(tt.records)
			require.Len(t, got, len(tt.want))
			for unit, want := range tt.want {
				require.InDelta(t, want, got[unit], 1e-9, unit)
			}
		})
	}
}
