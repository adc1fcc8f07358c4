package sqlite_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
)

func TestEventWorkloads(t *testing.T) {
	cp := openSmall(t, enrolment.Tiny.Dataset(suite.Engine))
	more := enrolment.Tiny
	more.Enrolments++
	missed := map[string]int{}
	var writes []enrolment.Workload
	for i, w := range enrolment.Workloads(enrolment.Tiny) {
		if w.Key != "query" && w.Key != "projectors" {
			writes = append(writes, w)
			continue
		}
		_, err := enrolment.Workloads(more)[i].Run(t.Context(), cp, pace.Config{N: 1})
		if errors.Is(err, bench.ErrMismatch) {
			missed[w.Group]++
		}
		res, err := w.Run(t.Context(), cp, pace.Config{N: 2})
		require.NoError(t, err, w)
		require.Equal(t, int64(2), res.Count, w)
	}
	require.Equal(t, map[string]int{"Read": 1, "ReadMemory": 1}, missed, "an event is missing that only what reads everything sees")
	for _, w := range writes {
		before, err := cp.Events.Head(t.Context())
		require.NoError(t, err)
		res, err := w.Run(t.Context(), cp, pace.Config{N: 400})
		require.NoError(t, err, w)
		after, err := cp.Events.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, after-before, res.Events, w)
	}
}
