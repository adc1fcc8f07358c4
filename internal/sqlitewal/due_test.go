package sqlitewal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestDue: a checkpoint runs when a unit of pages waits for it. From restartAt
// units on, one follows another until few pages wait, so that the writer can
// restart the log in a short pause. Not so on the writer's own connection, where
// a checkpoint is a pause itself.
func TestDue(t *testing.T) {
	const unit = 320
	for name, c := range map[string]struct {
		logged, pending int64
		apart, onWriter bool // whether it is due on its own connection, and on the writer's
	}{
		"nothing waits":                       {10 * unit, 0, false, false},
		"less than a unit":                    {unit - 1, unit - 1, false, false},
		"a unit":                              {unit, unit, true, true},
		"less than a unit, a long log":        {restartAt * unit, unit - 1, true, false},
		"some pages, a long log":              {restartAt * unit, unit/writerShare + 1, true, false},
		"few pages, a long log":               {restartAt * unit, unit / writerShare, false, false},
		"less than a unit, not so long a log": {restartAt*unit - 1, unit - 1, false, false},
	} {
		for onWriter, want := range map[bool]bool{false: c.apart, true: c.onWriter} {
			k := NewCheckpointer(Config{Options: driver.Options{WALFrames: unit}}, "", onWriter)
			require.Equal(t, want, k.due(c.logged, c.pending), "%s, onWriter=%v", name, onWriter)
		}
	}
}
