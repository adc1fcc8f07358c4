package libsql

import (
	"testing"

	"github.com/varvedb/varve/node/rpc/rpctest"
)

// TestSDK reads by means of one of Arkiv's libraries, and with -varve.sdk of each.
func TestSDK(t *testing.T) {
	rpctest.TrySDK(t, func(t testing.TB) string { return "libsql://" + newPath(t) })
}
