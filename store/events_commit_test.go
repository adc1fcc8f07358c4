package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/eventlog"
)

// TestGroupLength: a group has the leader's request and those after it within the
// limits, in order.
func TestGroupLength(t *testing.T) {
	small := func() *appendRequest { return &appendRequest{records: make([]eventlog.Record, 1), bytes: 100} }
	of := func(events int) *appendRequest { return &appendRequest{records: make([]eventlog.Record, events)} }
	large := func(bytes int) *appendRequest {
		return &appendRequest{records: make([]eventlog.Record, 1), bytes: bytes}
	}
	alone := func() *appendRequest {
		r := small()
		r.exclusive = true
		return r
	}
	for _, c := range []struct {
		name    string
		waiting []*appendRequest
		want    int
	}{
		{"the leader", []*appendRequest{small()}, 1},
		{"all", []*appendRequest{small(), small(), small()}, 3},
		{"exactly the events", []*appendRequest{of(groupEvents - 1), small(), small()}, 2},
		{"one event too many", []*appendRequest{of(groupEvents), small()}, 1},
		{"exactly the bytes", []*appendRequest{large(groupBytes - 100), small(), small()}, 2},
		{"too many bytes", []*appendRequest{small(), large(groupBytes), small()}, 1},
		{"a leader beyond the limits", []*appendRequest{of(2 * groupEvents), small()}, 1},
		{"not past one that does not fit", []*appendRequest{small(), of(groupEvents), small()}, 1},
		{"a leader that is alone", []*appendRequest{alone(), small()}, 1},
		{"until one that is alone", []*appendRequest{small(), small(), alone(), small()}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, groupLength(c.waiting))
		})
	}
}

// TestWithdraw: a request that is given up leaves the queue. Only the leader has a
// lead to pass, to the next request that waits.
func TestWithdraw(t *testing.T) {
	request := func() *appendRequest { return &appendRequest{wake: make(chan struct{}, 1)} }
	leader, second, third := request(), request(), request()
	leader.leading = true
	c := &groupCommit{hasLeader: true, waiting: []*appendRequest{leader, second, third}}
	woken := func() []int { return []int{len(leader.wake), len(second.wake), len(third.wake)} }

	require.True(t, c.withdraw(second))
	require.Equal(t, []int{0, 0, 0}, woken(), "the leader leads")
	require.True(t, c.withdraw(leader))
	require.Equal(t, []int{0, 0, 1}, woken())
	require.True(t, third.leading)
	require.True(t, c.hasLeader)
	require.False(t, c.withdraw(leader), "it is gone")
	require.True(t, c.withdraw(third))
	require.False(t, c.hasLeader, "no request is left to lead")
	require.Empty(t, c.waiting)
}
