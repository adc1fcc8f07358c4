package postgres_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench/rebac"
)

var rebacFlags = rebac.RegisterFlags(flag.CommandLine)

func BenchmarkRebac(b *testing.B) { rebac.Bench(b, suite.Engine, rebacFlags) }

func TestRebac(t *testing.T) { rebac.Test(t, suite.Engine, 200) }
