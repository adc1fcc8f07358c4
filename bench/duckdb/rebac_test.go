package duckdb_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench/gobench"
)

var rebacFlags = gobench.RegisterRebacFlags(flag.CommandLine)

func BenchmarkRebac(b *testing.B) { gobench.RunRebac(b, suite.Engine, rebacFlags) }

func TestRebac(t *testing.T) { gobench.CheckRebac(t, suite.Engine, 100) }
