package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeline(t *testing.T) {
	var line Timeline
	line.Record(100*time.Millisecond, 2*time.Millisecond)
	line.Record(900*time.Millisecond, 2*time.Millisecond)
	line.Record(2100*time.Millisecond, 300*time.Millisecond)
	line.Fail(2200 * time.Millisecond)
	line.Fail(3 * time.Second)

	seconds := line.Seconds(3500 * time.Millisecond)
	require.Equal(t, []Second{
		{At: 1, Count: 2, Max: 2 * time.Millisecond},
		{At: 2},
		{At: 3, Count: 1, Max: 300 * time.Millisecond, Errors: 1},
		{At: 3.5, Errors: 1},
	}, seconds)
	require.Equal(t, 4.0, line.Seconds(0)[3].At)
	require.Empty(t, new(Timeline).Seconds(0))
}
