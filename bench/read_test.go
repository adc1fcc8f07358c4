package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryQueryFindsSomething(t *testing.T) {
	queries := Queries()
	gen := GenOptions{Entities: 10_000, Seed: 1}
	answers, err := Answers(Typical, gen, queries)
	require.NoError(t, err)
	for i, q := range queries {
		require.NotEmpty(t, answers[i], q.Name)
		require.Less(t, len(answers[i]), gen.Entities/20, q.Name)
		if q.Limit > 0 {
			require.Len(t, answers[i], q.Limit, q.Name)
		}
	}
	other, err := Answers(Typical, GenOptions{Entities: 10_000, Seed: 99}, queries)
	require.NoError(t, err)
	require.NotEqual(t, answers, other)
}

func TestAnswersOfBrokenQuery(t *testing.T) {
	_, err := Answers(Minimal, GenOptions{Entities: 1}, []NamedQuery{{Name: "broken", Text: "("}})
	require.ErrorContains(t, err, "broken")
}
