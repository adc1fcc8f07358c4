package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEngineURL(t *testing.T) {
	require.Equal(t, "sqlite:///data/a%20b/varve.db", Engine{Name: "sqlite"}.URL("/data/a b"))
	e := Engine{Name: "postgres", Params: map[string]string{"page_size": "8192"}}
	require.Equal(t, "postgres:///data/varve?page_size=8192", e.URL("/data"))
	_, err := Dataset{Engine: Engine{Name: "unlinked"}}.Key()
	require.ErrorContains(t, err, "not linked")
}
