package result

import (
	"cmp"
	"slices"
)

// Select returns the records of an experiment whose config has all the given
// pairs; every experiment for "".
func (r *Results) Select(experiment string, where ...Pair) []Record {
	var found []Record
	for i := range r.Records {
		rec := &r.Records[i]
		if (experiment == "" || rec.Experiment == experiment) && rec.Config.Match(where...) {
			found = append(found, *rec)
		}
	}
	return found
}

// Match tells whether a config has all the given pairs. A pair with an empty
// value asks that the key is missing or empty.
func (c Config) Match(where ...Pair) bool {
	for _, p := range where {
		if c.Get(p.Key) != p.Value {
			return false
		}
	}
	return true
}

// Group is the repetitions of one configuration.
type Group struct {
	Key     string   // as Record.Key returns it
	Records []Record // by repetition, at least one
}

// GroupByKey puts repetitions together, in the order in which their keys first
// appear.
func GroupByKey(records []Record) []Group {
	var groups []Group
	at := make(map[string]int)
	for i := range records {
		key := records[i].Key()
		n, ok := at[key]
		if !ok {
			n = len(groups)
			at[key] = n
			groups = append(groups, Group{Key: key})
		}
		groups[n].Records = append(groups[n].Records, records[i])
	}
	for _, g := range groups {
		slices.SortStableFunc(g.Records, func(a, b Record) int { return cmp.Compare(a.Repeat, b.Repeat) })
	}
	return groups
}

// Values returns the figures of a unit, one for each repetition that ended well
// and has it.
func (g *Group) Values(unit string) []float64 {
	var values []float64
	for i := range g.Records {
		if v, ok := g.Records[i].Metric(unit); ok && g.Records[i].Error == "" {
			values = append(values, v)
		}
	}
	return values
}

// Median returns the median over the repetitions of the figures of a unit; false
// when none has it.
func (g *Group) Median(unit string) (float64, bool) {
	values := g.Values(unit)
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid], true
	}
	return (values[mid-1] + values[mid]) / 2, true
}
