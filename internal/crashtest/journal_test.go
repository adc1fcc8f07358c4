package crashtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJournalCutsTornLine: the line that a killed worker was writing is
// dropped, and the next worker writes after the last whole line.
func TestJournalCutsTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(path, []byte(`{"step":"apply","seed":1}`+"\n"+`{"ack":tr`), 0o600))
	j, records, err := openJournal(path)
	require.NoError(t, err)
	require.Equal(t, []record{{Step: stepApply, Seed: 1}}, records)
	require.NoError(t, j.acknowledge(record{Ack: true}))
	require.NoError(t, j.close())
	_, records, err = openJournal(path)
	require.NoError(t, err)
	require.Equal(t, []record{{Step: stepApply, Seed: 1}, {Ack: true}}, records)

	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o600))
	_, _, err = openJournal(path)
	require.ErrorContains(t, err, "journal")
}

// TestHistory: a journal gives the same states again, and says which of them a store may be in.
func TestHistory(t *testing.T) {
	var records []record
	for seed := range uint64(20) {
		records = append(records, record{Step: stepApply, Seed: seed}, record{Ack: true})
	}
	h, err := newHistory(records)
	require.NoError(t, err)
	require.Len(t, h.states, 21)
	require.Equal(t, 20, h.acked)

	again, err := newHistory(append(records, record{Step: stepLoad, Seed: 99}))
	require.NoError(t, err)
	require.Equal(t, h.states[20].Head(), again.states[20].Head())
	require.Equal(t, 20, again.acked)
	open := len(again.states) - 1 // the last block of a load without an acknowledgement
	require.Greater(t, open, 20)

	for _, c := range []struct {
		state        int
		found, lossy bool
	}{{20, true, false}, {open, true, false}, {19, false, false}, {19, true, true}, {0, true, true}} {
		i, ok := again.find(again.states[c.state].Head(), 0, c.lossy)
		require.Equal(t, c.found, ok, "%+v", c)
		if ok {
			require.Equal(t, c.state, i)
		}
	}
	_, ok := again.find(again.states[open].Head(), 7, true)
	require.False(t, ok, "another horizon")

	lost, err := newHistory(append(records, record{Resumed: true, State: 15}))
	require.NoError(t, err)
	require.Equal(t, 15, lost.acked)
	require.Equal(t, h.states[15].Head(), lost.states[15].Head())
}
