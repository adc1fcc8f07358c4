package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestStepRows: each commit writes its part of the rows that are left, at least
// some, and with the event at which they are due all of them.
func TestStepRows(t *testing.T) {
	for _, c := range []struct {
		name                    string
		left                    int
		before, last, due, want uint64
	}{
		{"one event of many", 3000, 100, 101, 3100, 5},
		{"the part is rounded up", 3001, 100, 110, 3100, 11},
		{"a group", 13_000, 4000, 4100, 7000, 434},
		{"what is left of it", 12_566, 4100, 4200, 7000, 434},
		{"fewer rows than the least", 4, 100, 101, 3100, 4},
		{"nothing left", 0, 100, 101, 3100, 0},
		{"all but one event", 3000, 0, 2999, 3000, 2999},
		{"the event at which all is due", 3000, 100, 3100, 3100, 3000},
		{"and behind it", 3000, 3200, 3201, 3100, 3000},
		{"at once", 3000, 100, 101, 0, 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.EqualValues(t, c.want, stepRows(c.left, c.before, c.last, c.due, 5))
		})
	}
}

// TestStepsEnd: whatever the commits bring, a batch is written before the next one
// is due, and no commit of a few events writes many rows more than another.
func TestStepsEnd(t *testing.T) {
	l, err := New("sqlite")
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		every := rapid.Uint64Range(1, 5000).Draw(rt, "every")
		rows := rapid.IntRange(1, 20_000).Draw(rt, "rows")
		most := rapid.SampledFrom([]uint64{1, 16, 128}).Draw(rt, "events")
		events := func() uint64 { return rapid.Uint64Range(1, most).Draw(rt, "of a commit") }
		more := events()
		size := every - 1 + more // when the batch begins
		at, due, left := size, l.due(size-more, size), rows
		for left > 0 {
			n := stepRows(left, at-more, at, due, 1)
			if n < 1 || n > left {
				rt.Fatalf("%d of %d rows", n, left)
			}
			share := (uint64(rows)*most)/max(due-(size-more), 1) + most
			if at < due && uint64(n) > 2*share {
				rt.Fatalf("%d rows with %d events, of %d for %d", n, more, rows, size)
			}
			if left -= n; left > 0 {
				more = events()
				at += more
			}
		}
		if at >= size+every+most {
			rt.Fatalf("a batch of %d events ends with %d more", size, at-size)
		}
	})
}
