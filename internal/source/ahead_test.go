package source

import (
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// numbers streams the numbers below n, and then an error if there is one. It counts
// in read how many it has handed out.
func numbers(n int, end error, read *int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if *read++; !yield(i, nil) {
				return
			}
		}
		if end != nil {
			yield(0, end)
		}
	}
}

// TestReadAhead: the loop sees each item once, in order, and the error at its place.
func TestReadAhead(t *testing.T) {
	broken := errors.New("broken")
	read, next := 0, 0
	for n, err := range readAhead(numbers(1000, broken, &read), func(*int) int { return aheadBytes / 50 }) {
		if next == 1000 {
			require.ErrorIs(t, err, broken)
		} else {
			require.NoError(t, err)
			require.Equal(t, next, n)
		}
		next++
	}
	require.Equal(t, 1001, next)
}

// TestReadAheadBounds: when the loop stalls, the goroutine reads on as far as the
// bounds allow: the items that fit, and one that waits for room. When the loop
// ends, the goroutine has ended; else the test would not end.
func TestReadAheadBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		bytes, fits int
	}{
		{"items", 1, aheadItems},
		{"bytes", aheadBytes / 3, 3},
		{"larger than the bound", 2 * aheadBytes, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := 0
				for n, err := range readAhead(numbers(10*aheadItems, nil, &read), func(*int) int { return c.bytes }) {
					require.NoError(t, err)
					synctest.Wait()
					require.Equal(t, n+1+c.fits+1, read)
					if n == 2 {
						break
					}
				}
				require.Equal(t, 3+c.fits+1, read, "nothing is read after the loop")
			})
		})
	}
}
