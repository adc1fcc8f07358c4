package sqlite_test

import "testing"

// Every workload that runs on a user's source does, and its answers are right.
func TestOwnSource(t *testing.T) {
	suite.Check(t, "../../testdata/arkiv-small/sqlite-store.db",
		"SampledBlocks", "ReadMix", "Load", "Sustained", "Checkpoint", "Reorg", "Combined", "Degradation", "FirstLook")
}
