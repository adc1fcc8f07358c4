package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecord: events are compared with an item in the place of reading a
// frequent tag's list only while an eighth of them match. When fewer do, as
// after a tag has become frequent, all lists are read from then on.
func TestRecord(t *testing.T) {
	for name, c := range map[string]struct {
		compared, matched int
		compares          bool
	}{
		"too few to tell":     {minCompared - 1, 0, true},
		"none":                {minCompared, 0, false},
		"less than an eighth": {minCompared, minCompared/8 - 1, false},
		"an eighth":           {minCompared, minCompared / 8, true},
		"less, of more":       {4 * minCompared, minCompared/2 - 1, false},
		"an eighth, of more":  {4 * minCompared, minCompared / 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			read, left := &list{}, &list{idle: true}
			st := &stream{lists: []*list{read}, unread: []*list{left}, compare: true}
			st.record(c.matched, true)
			st.record(c.compared-c.matched, false)
			require.Equal(t, c.compares, st.compare)
			require.Equal(t, c.compares, left.idle)
			if !c.compares {
				require.Equal(t, []*list{read, left}, st.lists)
			}
		})
	}
}
