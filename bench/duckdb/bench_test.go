package duckdb_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench"
	_ "github.com/varvedb/varve/store/duckdb"
)

var suite = bench.Suite{
	Engine: bench.Engine{Name: "duckdb", File: "varve.duckdb"},
	Flags:  bench.RegisterFlags(flag.CommandLine),
}

func BenchmarkCommit(b *testing.B)   { bench.RunCommit(b, suite) }
func BenchmarkGet(b *testing.B)      { bench.RunGet(b, suite) }
func BenchmarkQuery(b *testing.B)    { bench.RunQuery(b, suite) }
func BenchmarkApplyTar(b *testing.B) { bench.RunApplyTar(b, suite) }
