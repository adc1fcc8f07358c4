package libsql_test

import (
	"testing"

	"github.com/varvedb/varve/bench/gobench"
	_ "github.com/varvedb/varve/store/libsql"
)

var suite = gobench.NewSuite("libsql")

func TestRebac(t *testing.T)  { gobench.CheckRebac(t, suite, 0) }
func TestSocial(t *testing.T) { gobench.CheckSocial(t, suite) }

func BenchmarkCommit(b *testing.B)     { gobench.RunCommit(b, suite) }
func BenchmarkUpdate(b *testing.B)     { gobench.RunUpdate(b, suite) }
func BenchmarkGet(b *testing.B)        { gobench.RunGet(b, suite) }
func BenchmarkQuery(b *testing.B)      { gobench.RunQuery(b, suite) }
func BenchmarkApplyTar(b *testing.B)   { gobench.RunApplyTar(b, suite) }
func BenchmarkInsert(b *testing.B)     { gobench.RunInsert(b, suite) }
func BenchmarkReadMix(b *testing.B)    { gobench.RunReadMix(b, suite) }
func BenchmarkCheckpoint(b *testing.B) { gobench.RunCheckpoint(b, suite) }
func BenchmarkReorg(b *testing.B)      { gobench.RunReorg(b, suite) }
func BenchmarkCombined(b *testing.B)   { gobench.RunCombined(b, suite) }
func BenchmarkDataCentre(b *testing.B) { gobench.RunDataCentre(b, suite) }
func BenchmarkRebac(b *testing.B)      { gobench.RunRebac(b, suite) }
func BenchmarkSocial(b *testing.B)     { gobench.RunSocial(b, suite) }

func BenchmarkEventAppend(b *testing.B)            { gobench.RunEvents(b, suite, "Append") }
func BenchmarkEventAppendConcurrent(b *testing.B)  { gobench.RunEvents(b, suite, "AppendConcurrent") }
func BenchmarkEventAppendConditional(b *testing.B) { gobench.RunEvents(b, suite, "AppendConditional") }
func BenchmarkEventAppendRandom(b *testing.B)      { gobench.RunEvents(b, suite, "AppendRandom") }
func BenchmarkEventAppendBeside(b *testing.B)      { gobench.RunEvents(b, suite, "AppendBeside") }
func BenchmarkEventDecide(b *testing.B)            { gobench.RunEvents(b, suite, "Decide") }
func BenchmarkEventRead(b *testing.B)              { gobench.RunEvents(b, suite, "Read") }
func BenchmarkEventReadMemory(b *testing.B)        { gobench.RunEvents(b, suite, "ReadMemory") }
func BenchmarkEventStream(b *testing.B)            { gobench.RunEvents(b, suite, "Stream") }
func BenchmarkEventProject(b *testing.B)           { gobench.RunEvents(b, suite, "Project") }
