package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
)

// TestForBeginsWithTheFirst: what is made ready between the loop and its first operation
// takes none of its time. Queries of ten million events were counted for longer than they
// were to be measured, and measured not once.
func TestForBeginsWithTheFirst(t *testing.T) {
	loop := bench.For(time.Nanosecond)
	time.Sleep(time.Millisecond)
	require.True(t, loop())
	time.Sleep(time.Millisecond)
	require.False(t, loop())
	require.False(t, bench.For(0)())
}
