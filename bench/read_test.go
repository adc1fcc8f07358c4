package bench

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryQueryFindsSomething(t *testing.T) {
	gen, differ := GenOptions{Entities: 10_000, Seed: 1}, 0
	for _, q := range Queries() {
		answer, err := q.Answer(Typical, gen)
		require.NoError(t, err)
		require.NotEmpty(t, answer, q.Name)
		require.Less(t, len(answer), gen.Entities/20, q.Name)
		if q.Limit > 0 {
			require.Len(t, answer, q.Limit, q.Name)
		}
		other, err := q.Answer(Typical, GenOptions{Entities: 10_000, Seed: 99})
		require.NoError(t, err)
		if !slices.Equal(answer, other) {
			differ++
		}
	}
	require.Equal(t, len(Queries()), differ, "another seed has other answers")
}

func TestBrokenQuery(t *testing.T) {
	broken := NamedQuery{Name: "broken", Text: "("}
	_, err := broken.Answer(Minimal, GenOptions{Entities: 1})
	require.ErrorContains(t, err, "broken")
	_, err = broken.Reads(nil)
	require.ErrorContains(t, err, "broken")
}
