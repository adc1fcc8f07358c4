package cli

import (
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
)

// series is a result set as samples to compare.
type series struct {
	names  []string                        // of lines, in order
	units  []string                        // in order
	values map[string]map[string][]float64 // by name and unit
	run    map[string]string               // the key of the record that a line is of

	keys []string // of runs, in order
	runs map[string]*runState
}

// runState is how the repetitions of a configuration ended.
type runState struct {
	experiment, engine string
	good               bool   // one of them ended well
	err                string // why one did not
}

func newSeries(r *result.Results) *series {
	s := &series{values: make(map[string]map[string][]float64), run: make(map[string]string), runs: make(map[string]*runState)}
	for i := range r.Records {
		rec := &r.Records[i]
		state := s.runs[rec.Key()]
		if state == nil {
			state = &runState{experiment: rec.Experiment, engine: rec.Config.Get("engine")}
			s.runs[rec.Key()] = state
			s.keys = append(s.keys, rec.Key())
		}
		if rec.Error != "" {
			state.err = strings.Join(strings.Fields(rec.Error), " ")
			continue
		}
		state.good = true
		for _, l := range rec.Lines() {
			s.add(rec.Key(), l.Key(), l.Metrics)
		}
	}
	return s
}

func (s *series) add(run, name string, metrics []result.Metric) {
	units := s.values[name]
	if units == nil {
		units = make(map[string][]float64)
		s.values[name] = units
		s.run[name] = run
		s.names = append(s.names, name)
	}
	for _, m := range metrics {
		if !slices.Contains(s.units, m.Unit) {
			s.units = append(s.units, m.Unit)
		}
		units[m.Unit] = append(units[m.Unit], m.Value)
	}
}

// failed returns the keys of runs of which no repetition ended well.
func (s *series) failed() []string {
	return slices.DeleteFunc(slices.Clone(s.keys), func(key string) bool { return s.runs[key].good })
}

// tried tells whether a run of the same experiment on the same engine ended well.
func (s *series) tried(like *runState) bool {
	return slices.ContainsFunc(s.keys, func(key string) bool {
		r := s.runs[key]
		return r.good && r.experiment == like.experiment && r.engine == like.engine
	})
}
