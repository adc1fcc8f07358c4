package sqlite_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every workload that runs on a source of the user's own does, and what it is answered is right.
func TestOwnSource(t *testing.T) {
	path, err := filepath.Abs("../../testdata/arkiv-small/sqlite-store.db")
	require.NoError(t, err)
	for name, value := range map[string]string{"varve.source": path, "varve.layouts": "compact"} {
		old := flag.Lookup(name).Value.String()
		require.NoError(t, flag.Set(name, value))
		defer func() { require.NoError(t, flag.Set(name, old)) }()
	}
	suite.Check(t, "SampledBlocks", "ReadMix", "Load", "Sustained", "Checkpoint", "Reorg", "Combined", "Degradation", "RealBlocks")
}
