package postgres

import (
	"testing"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/storetest"
)

func TestCompact(t *testing.T) {
	h := storetest.Harness{NewURL: pgtest.NewURL, Server: true, Checks: 2}
	storetest.RunCompact(t, h, true)
	storetest.RunCompactLog(t, h)
}
