package postgres

import (
	"testing"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{NewURL: pgtest.NewURL, Server: true})
}
