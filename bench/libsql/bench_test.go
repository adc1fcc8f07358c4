package libsql_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/gobench"
	_ "github.com/varvedb/varve/store/libsql"
)

var suite = gobench.Suite{
	Engine: bench.Engine{Name: "libsql"},
	Flags:  gobench.RegisterFlags(flag.CommandLine),
}

func BenchmarkCommit(b *testing.B)   { gobench.RunCommit(b, suite) }
func BenchmarkUpdate(b *testing.B)   { gobench.RunUpdate(b, suite) }
func BenchmarkGet(b *testing.B)      { gobench.RunGet(b, suite) }
func BenchmarkQuery(b *testing.B)    { gobench.RunQuery(b, suite) }
func BenchmarkApplyTar(b *testing.B) { gobench.RunApplyTar(b, suite) }

func BenchmarkInsert(b *testing.B)     { gobench.RunInsert(b, suite) }
func BenchmarkReadMix(b *testing.B)    { gobench.RunReadMix(b, suite) }
func BenchmarkCheckpoint(b *testing.B) { gobench.RunCheckpoint(b, suite) }
func BenchmarkReorg(b *testing.B)      { gobench.RunReorg(b, suite) }
func BenchmarkCombined(b *testing.B)   { gobench.RunCombined(b, suite) }
func BenchmarkDataCentre(b *testing.B) { gobench.RunDataCentre(b, suite) }
