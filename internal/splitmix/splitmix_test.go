package splitmix_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/splitmix"
)

// TestScramble compares with the generator's published numbers for the seed 1234567.
func TestScramble(t *testing.T) {
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	state := uint64(1234567)
	for _, w := range want {
		require.Equal(t, w, splitmix.Scramble(state))
		state += splitmix.Step
	}
}

func TestFill(t *testing.T) {
	long := make([]byte, 21)
	splitmix.Fill(long, 99)
	for n := range long {
		short := make([]byte, n)
		splitmix.Fill(short, 99)
		require.Equal(t, long[:n], short, "a payload begins as a longer one")
	}
}
