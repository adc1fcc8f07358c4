package event_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/event"
)

// TestProjectMany: of many projections each gets the events that its query matches, once
// and in order.
func TestProjectMany(t *testing.T) {
	types, tags := rapid.SampledFrom([]string{"A", "B", "C"}), rapid.SampledFrom([]event.Tag{{Key: "x", Value: "1"}, {Key: "x", Value: "2"}, {Key: "y", Value: "1"}})
	item := rapid.Custom(func(rt *rapid.T) event.Item {
		it := event.Item{Tags: rapid.SliceOfN(tags, 0, 2).Draw(rt, "tags")}
		least := 0
		if len(it.Tags) == 0 {
			least = 1
		}
		it.Types = rapid.SliceOfN(types, least, 2).Draw(rt, "types")
		return it
	})
	rapid.Check(t, func(rt *rapid.T) {
		s := &scripted{}
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			s.stored = append(s.stored, event.Event{Type: types.Draw(rt, "type"), Tags: rapid.SliceOfN(tags, 0, 3).Draw(rt, "tags")})
		}
		var reads []event.Projector
		var want []string
		for range rapid.IntRange(1, 5).Draw(rt, "projections") {
			q := event.Query{Items: rapid.SliceOfN(item, 0, 3).Draw(rt, "items")}
			text := ""
			for i := range s.stored {
				if q.Matches(&s.stored[i]) {
					text += fmt.Sprint(i+1, " ")
				}
			}
			want = append(want, text)
			reads = append(reads, event.NewProjection(q, "", func(text string, e *event.Sequenced) string { return text + fmt.Sprint(e.Position, " ") }))
		}
		if _, err := event.Project(t.Context(), s, reads...); err != nil {
			rt.Fatal(err)
		}
		for i, p := range reads {
			if got := p.(*event.Projection[string]).State; got != want[i] {
				rt.Fatalf("%+v: got %s, want %s", p.Selects(), got, want[i])
			}
		}
	})
}
