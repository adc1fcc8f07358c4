package experiment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func find(t *testing.T, id string) Experiment {
	t.Helper()
	found, err := Find([]string{id})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// TestTimeoutFollowsThePhase: an hour of reorgs with each of the layouts has the
// time for it, and a short phase gets no more than data sets need.
func TestTimeoutFollowsThePhase(t *testing.T) {
	o := Options{Scale: 0.05, Phase: time.Hour, Layouts: []string{"arkiv", "compact"}}
	d3 := find(t, "D3")
	require.Greater(t, d3.Timeout(o), 2*time.Hour)
	require.Less(t, d3.Timeout(o), 6*time.Hour)
	o.Layouts = nil
	require.Greater(t, d3.Timeout(o), time.Duration(len(d3.Layouts))*time.Hour)
	short := Options{Scale: 0.05, Phase: time.Second}
	require.Less(t, d3.Timeout(short), 2*time.Hour)

	larger := short
	larger.Sizes = []float64{5}
	require.Greater(t, find(t, "D5").Timeout(larger), 50*find(t, "D5").Timeout(short))
	for _, e := range All() {
		require.Greater(t, e.Timeout(o), time.Hour, e.ID)
	}
}

// TestReadersFirst: in place, what changes data sets comes after all that reads.
func TestReadersFirst(t *testing.T) {
	all := All()
	ReadersFirst(all)
	require.Len(t, all, len(All()))
	changed := false
	var ids []string
	for _, e := range all {
		require.False(t, changed && !e.Changes, "%s comes after one that changes data sets", e.ID)
		changed = e.Changes
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"A8", "D1", "D2", "D3", "D4", "D5", "E2", "E3", "F1", "F2", "F3", "F4", "H3"}, ids[len(ids)-13:])
}
