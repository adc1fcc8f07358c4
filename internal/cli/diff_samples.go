package cli

import (
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// aaKey is the key of a configuration that is measured twice in each block, as
// 1 and as 2. The second one only says how far two of the same are apart: both
// share what else went on, so that together they are not twice the samples.
const aaKey = "aa"

// samples are the figures of two result sets, old and new, by unit and name.
type samples struct {
	units  []string    // in the order in which they first appear
	names  [2][]string // of a side, in order
	values map[unitName]*pair
}

type unitName struct{ unit, name string }

// pair is the figures of one configuration: of old and new, and of each the
// second measurement of the same.
type pair [2][2][]float64

func gather(sets ...*result.Results) *samples {
	s := &samples{values: make(map[unitName]*pair)}
	for side, set := range sets {
		for i := range set.Records {
			for _, line := range set.Records[i].Lines() {
				s.add(side, &line)
			}
		}
	}
	return s
}

func (s *samples) add(side int, l *result.Record) {
	name, variant := plainKey(l), 0
	if l.Config.Get(aaKey) == "2" {
		variant = 1
	}
	if !slices.Contains(s.names[side], name) {
		s.names[side] = append(s.names[side], name)
	}
	for _, m := range l.Metrics {
		if !slices.Contains(s.units, m.Unit) {
			s.units = append(s.units, m.Unit)
		}
		p := s.values[unitName{m.Unit, name}]
		if p == nil {
			p = &pair{}
			s.values[unitName{m.Unit, name}] = p
		}
		p[side][variant] = append(p[side][variant], m.Value)
	}
}

// plainKey is the key of a record, whichever of two measurements of the same it
// is.
func plainKey(r *result.Record) string {
	plain := *r
	plain.Config = slices.DeleteFunc(slices.Clone(r.Config), func(p result.Pair) bool { return p.Key == aaKey })
	return plain.Key()
}

// again returns the largest change between measurements of the same in a unit;
// false when there are none.
func (s *samples) again(unit string) (largest float64, found bool) {
	for at, p := range s.values {
		for _, side := range p {
			if at.unit != unit || len(side[0]) == 0 || len(side[1]) == 0 {
				continue
			}
			if change := stat.Change(stat.Median(side[0]), stat.Median(side[1])); !math.IsInf(change, 0) {
				largest, found = max(largest, change), true
			}
		}
	}
	return largest, found
}

// addMissing lists what one side does not have. What fails now and did not is a
// regression; what was not run is none, but nobody should overlook it.
func (d *difference) addMissing(s *samples, before, after *result.Results) {
	was := runs.Gather(before.Records)
	var failed []string
	for _, g := range runs.Gather(after.Records) {
		if !g.Failed() {
			continue
		}
		failed = append(failed, plainKey(g.Records[0]))
		if endedWell(was, g) {
			last := g.Records[len(g.Records)-1]
			d.Failed = append(d.Failed, failure{g.Key(), strings.Join(strings.Fields(last.Error), " ")})
			d.Compared++
			d.Regressions++
		}
	}
	for _, name := range s.names[0] {
		ofFailed := func(key string) bool { return strings.HasPrefix(name+"/", key+"/") }
		if !slices.Contains(s.names[1], name) && !slices.ContainsFunc(failed, ofFailed) {
			d.OnlyOld = append(d.OnlyOld, name)
		}
	}
	for _, name := range s.names[1] {
		if !slices.Contains(s.names[0], name) {
			d.OnlyNew = append(d.OnlyNew, name)
		}
	}
}

// endedWell tells whether a configuration did so, or where it is new another one
// of its experiment and engine.
func endedWell(was []*runs.Group, g *runs.Group) bool {
	if same := runs.Where(was, func(w *runs.Group) bool { return w.Key() == g.Key() }); len(same) > 0 {
		return !same[0].Failed()
	}
	return slices.ContainsFunc(was, func(w *runs.Group) bool {
		return !w.Failed() && w.Experiment == g.Experiment && w.Get("engine") == g.Get("engine")
	})
}
