package stat

import (
	"math"

	"github.com/varvedb/varve/bench/result"
)

// Noise returns by unit how far apart measurements of the same are, as Change has
// it: the largest difference between the medians of a configuration and of its
// second measurement (result.AAKey), over the blocks that have both. Units that no
// pair has are not in it: of them nothing is known.
func Noise(records []result.Record) map[string]float64 {
	type run struct {
		key    string
		repeat int
	}
	firsts := make(map[run]*result.Record)
	for i := range records {
		if r := &records[i]; !r.Again() && r.Error == "" {
			firsts[run{r.Once().Key(), r.Repeat}] = r
		}
	}
	type figure struct{ key, unit string }
	pairs := make(map[figure][2][]float64)
	for i := range records {
		second := &records[i]
		key := second.Once().Key()
		first := firsts[run{key, second.Repeat}]
		if !second.Again() || second.Error != "" || first == nil {
			continue
		}
		for _, m := range second.Metrics {
			if v, ok := first.Metric(m.Unit); ok {
				at := figure{key, m.Unit}
				pairs[at] = [2][]float64{append(pairs[at][0], v), append(pairs[at][1], m.Value)}
			}
		}
	}
	noise := make(map[string]float64)
	for at, p := range pairs {
		if change := Change(Median(p[0]), Median(p[1])); !math.IsInf(change, 0) {
			noise[at.unit] = max(noise[at.unit], change)
		}
	}
	return noise
}
