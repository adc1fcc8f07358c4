package compact

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUrgency: work waits while the debt is small, and only a backlog makes it
// urgent.
func TestUrgency(t *testing.T) {
	o := Options{Backlog: 1000}.withDefaults()
	for _, c := range []struct {
		backlog, compactions int64
		want                 urgency
	}{
		{0, 0, whenIdleLong},
		{249, 0, whenIdleLong},
		{100, 149, whenIdleLong},
		{250, 0, whenIdle},
		{100, 150, whenIdle},
		{1000, 0, whenIdle},
		{0, 1_000_000, whenIdle},
		{1001, 0, atOnce},
	} {
		require.Equal(t, c.want, o.urgency(c.backlog, c.compactions), "%+v", c)
	}
}

// TestShareBudget: which share of the backlog a block merges, of a limit of 16,384
// changes.
func TestShareBudget(t *testing.T) {
	const limit, slice = DefaultBacklog, sliceTime
	for name, c := range map[string]struct {
		backlog, changes int
		prepared         bool
		want             budget // none: no share
	}{
		"little backlog":               {limit / 2, 100, true, budget{}},
		"above half":                   {limit/2 + 320, 100, true, budget{time: slice, most: 300 + 10}},
		"above half, not prepared":     {limit/2 + 320, 100, false, budget{}},
		"at the limit":                 {limit, 100, true, budget{time: slice, most: 300 + 256}},
		"above the limit":              {limit + 32, 100, true, budget{time: growth * slice, least: 100, most: 300 + 257 + 500}},
		"above the limit, a large one": {limit + 32, 5000, true, budget{time: growth * slice, least: 5000, most: 8*5000 + 257}},
		"twice the limit":              {2 * limit, 100, false, budget{}},
		"above twice, not prepared":    {2*limit + 32, 100, false, budget{time: growth * slice, least: 100, most: 800 + 769}},
	} {
		got, ok := Options{}.withDefaults().shareBudget(c.backlog, c.changes, c.prepared)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want.most > 0, ok, name)
	}
	small, ok := Options{Backlog: 8}.withDefaults().shareBudget(5, 2, false)
	require.True(t, ok, "small steps need no prepared batch")
	require.Equal(t, budget{time: math.MaxInt64, most: 6}, small)
}

// TestAllows: a transaction goes on while it has time, and until it has done its
// share.
func TestAllows(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	const slice = sliceTime
	for name, c := range map[string]struct {
		b      budget
		took   time.Duration
		merged int
		want   bool
	}{
		"one step":                        {budget{wanted: no, most: 9}, 1, 1, false},
		"in time":                         {budget{time: slice, wanted: yes, most: 9}, slice - 1, 1, true},
		"late":                            {budget{time: slice, wanted: yes, most: 9}, slice, 1, false},
		"late, no writer waits":           {budget{time: slice, wanted: no, most: 9}, slice, 1, true},
		"later, no writer waits":          {budget{time: slice, wanted: no, most: 9}, growth * slice, 1, false},
		"the share is done":               {budget{time: slice, most: 9}, 1, 9, false},
		"late, and the least is not done": {budget{time: slice, least: 5, most: 9}, growth * slice, 4, true},
		"late, and the least is done":     {budget{time: slice, least: 5, most: 9}, growth * slice, 5, false},
		"compactions only":                {budget{time: slice, least: 5, most: 9}, slice - 1, 0, true},
		"compactions only, late":          {budget{time: slice, least: 5, most: 9}, slice, 0, false},
	} {
		require.Equal(t, c.want, c.b.allows(c.took, c.merged), name)
	}
}

// TestCredit: a merge earns compactions growth times its pages, up to a bound.
func TestCredit(t *testing.T) {
	var c credit
	c.earn(10)
	require.EqualValues(t, 10*growth, c)
	c.spend(15)
	require.EqualValues(t, 10*growth-15, c)
	c.spend(1000)
	require.Zero(t, c)
	c.earn(1 << 20)
	require.EqualValues(t, defaultBatch, c)
}
