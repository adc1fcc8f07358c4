package report

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lab"
)

// TestSpecs: each experiment of the catalogue has tables here, and a section.
func TestSpecs(t *testing.T) {
	for _, e := range lab.All() {
		i := slices.IndexFunc(specs, func(s Spec) bool { return s.ID == e.ID })
		require.GreaterOrEqual(t, i, 0, e.ID)
		require.NotEmpty(t, specs[i].Views, e.ID)
		require.True(t, slices.ContainsFunc(sections, func(s struct{ Letter, Title string }) bool { return s.Letter == e.ID[:1] }), e.ID)
		for _, v := range specs[i].Views {
			_, err := new(Set).choose(v)
			require.NoError(t, err, e.ID)
		}
	}
}
