package rpc_test

import (
	"testing"

	"github.com/varvedb/varve/node/rpc/rpctest"
)

// TestSDK reads by means of Arkiv's own libraries; tests of the other engines do so, too.
func TestSDK(t *testing.T) {
	rpctest.RunSDK(t, func(t testing.TB) string { return "sqlite://" + t.TempDir() + "/varve.db?durability=unsafe" })
}
