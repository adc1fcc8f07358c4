package postgres_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench"
	_ "github.com/varvedb/varve/store/postgres"
)

var suite = bench.Suite{
	Engine: bench.Engine{Name: "postgres", File: "server"},
	Flags:  bench.RegisterFlags(flag.CommandLine),
}

func BenchmarkCommit(b *testing.B)   { bench.RunCommit(b, suite) }
func BenchmarkGet(b *testing.B)      { bench.RunGet(b, suite) }
func BenchmarkQuery(b *testing.B)    { bench.RunQuery(b, suite) }
func BenchmarkApplyTar(b *testing.B) { bench.RunApplyTar(b, suite) }
