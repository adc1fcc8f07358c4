package postgres

import (
	"testing"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/node/rpc/rpctest"
)

// TestSDK reads by means of one of Arkiv's libraries, and with -varve.sdk of each.
func TestSDK(t *testing.T) { rpctest.TrySDK(t, pgtest.NewURL) }
