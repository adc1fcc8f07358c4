package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEngineURL(t *testing.T) {
	require.Equal(t, "sqlite:///data/a%20b/varve.db", Engine{Name: "sqlite"}.URL("/data/a b"))
	require.Equal(t, "postgres:///data/varve", Engine{Name: "postgres"}.URL("/data"))
	_, err := Dataset{Engine: Engine{Name: "unlinked"}}.Key()
	require.ErrorContains(t, err, "not linked")
}
