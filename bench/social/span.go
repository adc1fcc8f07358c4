package social

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench"
)

// Span is the states that a read view may hold: after the writes that were
// acknowledged before it was opened, and up to those that had begun by then. Of
// the states in between, one must explain an answer.
type Span struct{ From, To int64 }

// String returns "write 3" or "writes 3 to 5".
func (s Span) String() string {
	if s.From == s.To {
		return fmt.Sprintf("write %d", s.From)
	}
	return fmt.Sprintf("writes %d to %d", s.From, s.To)
}

// explained tells whether one of the states gives an answer.
func (s Span) explained(right func(point int64) bool) bool {
	for point := s.From; point <= s.To; point++ {
		if right(point) {
			return true
		}
	}
	return false
}

// JudgeCheck fails with ErrMismatch when no state of a span gives the answer of a
// check.
func (o *Oracle) JudgeCheck(s Span, viewer, object Object, got bool) error {
	if s.explained(func(point int64) bool { return o.May(viewer, object, point) == got }) {
		return nil
	}
	return fmt.Errorf("%w: %s may view %s: %v, want %v after %s", bench.ErrMismatch, viewer, object, got, !got, s)
}

// JudgeContent is JudgeCheck for LookupContent.
func (o *Oracle) JudgeContent(s Span, viewer, from Object, limit int, got []Object) error {
	if s.explained(func(point int64) bool { return slices.Equal(o.Visible(viewer, from, limit, point), got) }) {
		return nil
	}
	return fmt.Errorf("%w: content that %s may view from %s on: %v, want %v after %s",
		bench.ErrMismatch, viewer, from, got, o.Visible(viewer, from, limit, s.From), s)
}

// JudgeSubjects is JudgeCheck for LookupSubjects.
func (o *Oracle) JudgeSubjects(s Span, content Object, got []Object) error {
	if s.explained(func(point int64) bool { return slices.Equal(o.Viewers(content, point), got) }) {
		return nil
	}
	return fmt.Errorf("%w: who may view %s: %v, want %v after %s", bench.ErrMismatch, content, got, o.Viewers(content, s.From), s)
}
