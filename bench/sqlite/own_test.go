package sqlite_test

import "testing"

// Every workload that runs on a source of the user's own does, and what it is answered is right.
func TestOwnSource(t *testing.T) {
	suite.Check(t, "../../testdata/arkiv-small/sqlite-store.db",
		"SampledBlocks", "ReadMix", "Load", "Sustained", "Checkpoint", "Reorg", "Combined", "Degradation", "FirstLook")
}
