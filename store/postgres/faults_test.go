package postgres_test

import (
	"testing"

	"github.com/varvedb/varve/internal/faulttest"
)

func TestFlips(t *testing.T) {
	faulttest.RunFlips(t, "postgres", 2, "events")
}

func TestResources(t *testing.T) {
	faulttest.RunResources(t, "postgres", "a server writes its log and its lock file to the directory")
}
