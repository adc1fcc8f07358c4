package verdict_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/verdict"
)

// candidate is what a campaign measures of an engine with a layout: commits and reads at
// scale 1 in six blocks, the growth at 1, 2 and 5 in three, and a single block at 5x.
type candidate struct {
	engine, layout string
	p99            float64 // at scale 1; it grows with the root of the size
	reads          float64 // a second, of each mix
	without5x      bool
}

func (c candidate) records() (records []result.Record) {
	spread := func(v float64, n int) (values []float64) {
		for i := range n {
			values = append(values, v*(1+float64(i-n/2)/50))
		}
		return values
	}
	add := func(r result.Record, unit string, v float64, blocks int) {
		r.Config = r.Config.With("layout", c.layout)
		records = append(records, repeated(r, unit, spread(v, blocks)...)...)
	}
	add(sustained(c.engine, "1", c.p99), "p99-ms", c.p99, 6)
	for scale, root := range map[string]float64{"1": 1, "2": 1.41, "5": 2.24} {
		if scale == "5" && c.without5x {
			continue
		}
		r := record("D5", c.engine, "scale="+scale, figures{"rows/s": 6000, "p99-ms": 1, "qps-A": c.reads / root / 10, "qps-B": c.reads / root / 10, "qps-C": c.reads / root / 10})
		add(r, "p99-ms", c.p99*root, 3)
	}
	if !c.without5x {
		add(sustained(c.engine, "5", c.p99*2.24), "p99-ms", c.p99*2.24, 1)
	}
	add(record("D4", c.engine, "scale=1 rate=10000 qps=1000", figures{"p99-ms": c.p99, "rows/s": 10_050, "qps": 1005}), "p99-ms", c.p99, 3)
	for _, mix := range []string{"A", "B", "C"} {
		add(record("C1", c.engine, "scale=1 clients=1 mix="+mix, figures{"qps": 1}), "qps", c.reads, 6)
	}
	return records
}

// The sentence of a campaign: who meets every target by figures that were measured at the
// size, in the tree's order of engines, the seed's layout first; and nobody by less.
func TestCampaign(t *testing.T) {
	good, slow := 30.0, 900.0
	tests := []struct {
		name       string
		candidates []candidate
		want       string
	}{
		{"a clear winner", []candidate{{"sqlite", "arkiv", good, 3, false}, {"sqlite", "compact", good, 20_000, false}, {"libsql", "compact", slow, 20_000, false}, {"sqlite", "simple", good, 5, false}},
			"Choose sqlite with layout compact, by what was measured at revision aaaaaaa: commit p99 at 5x 67.2 ms (n=1) at scale 5, "},
		{"two within the noise", []candidate{{"sqlite", "compact", good, 20_000, false}, {"libsql", "compact", 1.1 * good, 19_000, false}},
			"; every target is met as well by libsql with layout compact."},
		{"the tree's order is not that of the records", []candidate{{"libsql", "compact", good, 20_000, false}, {"sqlite", "compact", good, 20_000, false}}, "Choose sqlite with layout compact,"},
		{"one without 5x", []candidate{{"sqlite", "compact", good, 20_000, true}, {"libsql", "compact", good, 20_000, false}},
			"Not known: of the 2 engines with a layout that were measured at revision aaaaaaa, none is known to meet or to miss every target; measure next: varve run D1 --engines sqlite --layouts compact --scale 5 "},
		{"one without 5x in another layout", []candidate{{"sqlite", "arkiv", good, 20_000, true}, {"sqlite", "compact", good, 20_000, false}}, "Choose sqlite with layout compact,"},
		{"an engine that was not measured", []candidate{{"postgres", "compact", good, 20_000, false}}, "Choose postgres with layout compact,"},
		{"an engine outside of the tree", []candidate{{"sqlite", "compact", slow, 20_000, false}, {"sqlitego", "compact", good, 20_000, false}}, "Choose sqlitego with layout compact,"},
		{"history first", []candidate{{"sqlite", "simple", good, 20_000, false}, {"sqlite", "compact", good, 20_000, false}},
			"Choose sqlite with layout compact, by"},
		{"no history", []candidate{{"sqlite", "simple", good, 20_000, false}}, "Choose sqlite with layout simple, which keeps no history, by"},
		{"near the limit", []candidate{{"sqlite", "compact", 215, 20_000, false}}, "Not known: "},
		{"all miss", []candidate{{"sqlite", "compact", slow, 20_000, false}, {"libsql", "compact", good, 300, false}}, "Choose none of the 2 engines with a layout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var records []result.Record
			for _, c := range tt.candidates {
				records = append(records, c.records()...)
			}
			require.Contains(t, evaluateWith(1.15, records...).Sentence, tt.want)
		})
	}
}

// What is bad of far more data than is asked about says nothing of less: V1 asks for 0.78,
// write targets for 1, the tree for 5x.
func TestLargerThanAsked(t *testing.T) {
	reads := func(scale string, v float64) result.Record {
		return record("C1", "sqlite", "scale="+scale+" clients=1 mix=A", figures{"qps": v})
	}
	grown := func(scale string, v float64) result.Record {
		return record("D5", "sqlite", "scale="+scale, figures{"qps-A": v, "rows/s": 6000, "p99-ms": 10})
	}
	const v1, p50, tree = "reads/s of mix A with one client", "commit p50", treeLatency
	for _, tt := range []struct {
		name, criterion string
		records         []result.Record
		want            verdict.Outcome
	}{
		{"good at the size, bad at 5x", v1, []result.Record{reads("1", 9000), grown("5", 100)}, verdict.Pass},
		{"bad at the size, good at none", v1, []result.Record{reads("1", 100), grown("5", 10)}, verdict.Fail},
		{"bad at 5x only", v1, []result.Record{grown("5", 100)}, verdict.Unknown},
		{"good at 5x only", v1, []result.Record{grown("5", 9000)}, verdict.Pass},
		{"writes bad at 5x only", p50, []result.Record{sustained("sqlite", "5", 9000)}, verdict.Unknown},
		{"writes that crashed at 5x", "rows a second", []result.Record{crashed(sustained("sqlite", "5", 1))}, verdict.Unknown},
		{"10x bad, 5x good", tree, []result.Record{sustained("sqlite", "5", 100), sustained("sqlite", "11", 9000)}, verdict.Pass},
		{"11x bad", tree, []result.Record{sustained("sqlite", "11", 9000)}, verdict.Unknown},
		{"11x good", tree, []result.Record{sustained("sqlite", "11", 100)}, verdict.Pass},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := find(t, evaluate(tt.records...), tt.criterion)
			require.Equal(t, tt.want, c.Verdict, c.Note)
		})
	}
}
