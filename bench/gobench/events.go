package gobench

import (
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/internal/coreset"
	"github.com/varvedb/varve/store"
)

// coreEvents are the workloads over events of the core set, in the layout that every
// engine has.
var coreEvents = map[string][]string{"AppendConditional": {"1", "16"}}

// RunEvents measures the workloads of a group of enrolment.Workloads, on each data set
// in each event layout of the engine.
func RunEvents(b *testing.B, s Suite, group string) {
	if coreEvents[group] == nil {
		coreset.Skip(b)
	}
	datasets, err := s.Flags.eventData()
	must(b, err)
	layouts := store.EventLayouts(s.driver(b).Info.Dialect)
	switch {
	case s.Flags.eventLayouts != "":
		layouts = strings.Split(s.Flags.eventLayouts, ",")
	case coreset.Only():
		layouts = []string{"tags"}
	}
	for _, layout := range layouts {
		for _, data := range datasets {
			d := data.Dataset(s.Engine, layout)
			d.Profile.Name = data.Name
			b.Run(s.Name(d), func(b *testing.B) {
				r := s.Open(b, d)
				for _, w := range enrolment.Workloads(data) {
					if w.Group != group || coreset.Only() && !slices.Contains(coreEvents[group], w.Value) {
						continue
					}
					b.Run(w.Key+"="+w.Value, func(b *testing.B) { Report(b)(w.Run(b.Context(), r.Copy, b)) })
				}
			})
		}
	}
}
