package crashtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many places were hit, and whatever came of it, no line of a report is
// wider than a terminal, and none of the counts is left out.
func TestReportWidth(t *testing.T) {
	r := &Report{}
	for i := range 20 {
		row := newRow(Trial{Name: "crash"}, Cell{Engine: "sqlite", Layout: fmt.Sprint("arkiv-", i)})
		for place := range 12 {
			row.Fault(fmt.Sprintf("a commit at its step %d", place))
			row.Outcomes[fmt.Sprintf("the block of step %d is whole", place)]++
		}
		r.Rows = append(r.Rows, row)
	}
	r.Rows = append(r.Rows, &Row{Trial: "power", Engine: "sqlite", Layout: "compact", Skipped: "needs root"})
	var out strings.Builder
	require.NoError(t, r.Print(&out))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(line), 101, line)
	}
	require.Contains(t, out.String(), "crash hit:\n       20 a commit at its step 0\n", "of all rows of the trial")
	require.Contains(t, out.String(), "crash ended in:\n       20 the block of step 0 is whole\n")
	require.NotContains(t, out.String(), "power hit")
}
