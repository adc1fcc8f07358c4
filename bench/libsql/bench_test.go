package libsql_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench"
	_ "github.com/varvedb/varve/store/libsql"
)

var suite = bench.Suite{
	Engine: bench.Engine{Name: "libsql", File: "varve.db"},
	Flags:  bench.RegisterFlags(flag.CommandLine),
}

func BenchmarkCommit(b *testing.B)   { bench.RunCommit(b, suite) }
func BenchmarkUpdate(b *testing.B)   { bench.RunUpdate(b, suite) }
func BenchmarkGet(b *testing.B)      { bench.RunGet(b, suite) }
func BenchmarkQuery(b *testing.B)    { bench.RunQuery(b, suite) }
func BenchmarkApplyTar(b *testing.B) { bench.RunApplyTar(b, suite) }

func BenchmarkInsert(b *testing.B)     { bench.RunInsert(b, suite) }
func BenchmarkReadMix(b *testing.B)    { bench.RunReadMix(b, suite) }
func BenchmarkCheckpoint(b *testing.B) { bench.RunCheckpoint(b, suite) }
func BenchmarkReorg(b *testing.B)      { bench.RunReorg(b, suite) }
func BenchmarkCombined(b *testing.B)   { bench.RunCombined(b, suite) }
func BenchmarkDataCentre(b *testing.B) { bench.RunDataCentre(b, suite) }
