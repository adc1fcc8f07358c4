package lab

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
)

// TestSizes: what is measured at each of --sizes has the scale in its name.
func TestSizes(t *testing.T) {
	l := testLab(t)
	l.Sizes, l.Rates, l.Layouts = []float64{1, 5}, []float64{7}, []string{"compact"}
	for id, each := range map[string]int{"C1": 2 * len(mix.Names), "C4": 10, "D1": 1, "I3": 1} {
		list, err := l.Plan(find(t, id))
		require.NoError(t, err)
		scales := map[string]int{}
		for _, v := range list {
			scales[v.Keys.Get("scale")]++
		}
		require.Equal(t, map[string]int{"1": each, "5": each}, scales, id)
	}
}

// TestRenewed: a process whose memory earlier configurations have used gives way to a new one
// before a smaller budget holds, and to begin with it does not.
func TestRenewed(t *testing.T) {
	renewed := errors.New("renewed")
	l := &Lab{Renew: func() error { return renewed }}
	r := &Record{}
	_, err := l.within(1<<20, r)
	require.NoError(t, err)
	l.used = true
	_, err = l.within(1<<20, r)
	require.ErrorIs(t, err, renewed)
	l.Renew = func() error { return errors.ErrUnsupported }
	_, err = l.within(1<<20, r)
	require.NoError(t, err, "where a process cannot become another, it goes on")
	runs := 0
	l = testLab(t)
	l.Renew = func() error { return renewed }
	run := func() error {
		return l.WithBase(t.Context(), "compact", l.Scale, nil, r, func(*bench.Dataset, *bench.Copy) error { runs++; return nil })
	}
	require.ErrorIs(t, run(), renewed, "it has loaded the data set")
	require.NoError(t, run())
	require.Equal(t, 1, runs)
}
