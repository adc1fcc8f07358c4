package line_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/line"
)

// endless gives one line without an end, and counts what is taken of it.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.taken += len(p)
	return len(p), nil
}

func TestNext(t *testing.T) {
	long := strings.Repeat("y", 1<<20)
	r := line.NewReader(iotest.HalfReader(strings.NewReader("a\n\n"+long+"\nb\r\nlast")), 1<<20)
	for _, want := range []string{"a", "", long, "b\r", "last"} {
		got, took, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		if want != "last" {
			require.Equal(t, len(want)+1, took)
		}
	}
	for range 2 {
		_, _, err := r.Next()
		require.ErrorIs(t, err, io.EOF)
	}
	for _, most := range []int{10, 1 << 20} {
		for _, text := range []string{strings.Repeat("z", most+1), strings.Repeat("z", most+1) + "\n"} {
			_, _, err := line.NewReader(strings.NewReader(text), most).Next()
			var e *line.LongError
			require.ErrorAs(t, err, &e)
			require.Equal(t, most, e.Max)
		}
	}
	broken := errors.New("broken")
	r.Reset(io.MultiReader(strings.NewReader("half a li"), iotest.ErrReader(broken)))
	_, _, err := r.Next()
	require.ErrorIs(t, err, broken, "no line that ends with an error is told")
}

// TestEndless: a line without an end takes no more than what a line may have.
func TestEndless(t *testing.T) {
	var text endless
	_, _, err := line.NewReader(&text, 1<<20).Next()
	require.Error(t, err)
	require.Less(t, text.taken, 2<<20)
}
