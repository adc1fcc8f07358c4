package duckdb_test

import (
	"testing"

	"github.com/varvedb/varve/bench/gobench"
	_ "github.com/varvedb/varve/internal/lab/network"
	_ "github.com/varvedb/varve/store/duckdb"
)

var suite = gobench.NewSuite("duckdb")

func TestAnswers(t *testing.T) { suite.Check(t, "", "RebacIngest", "Social", "ReadMix") }

func BenchmarkInsert(b *testing.B)                 { suite.Run(b, "Insert") }
func BenchmarkCommit(b *testing.B)                 { suite.Run(b, "Commit") }
func BenchmarkSampledBlocks(b *testing.B)          { suite.Run(b, "SampledBlocks") }
func BenchmarkReadMix(b *testing.B)                { suite.Run(b, "ReadMix") }
func BenchmarkDesigned(b *testing.B)               { suite.Run(b, "Designed") }
func BenchmarkLoad(b *testing.B)                   { suite.Run(b, "Load") }
func BenchmarkSustained(b *testing.B)              { suite.Run(b, "Sustained") }
func BenchmarkCheckpoint(b *testing.B)             { suite.Run(b, "Checkpoint") }
func BenchmarkReorg(b *testing.B)                  { suite.Run(b, "Reorg") }
func BenchmarkCombined(b *testing.B)               { suite.Run(b, "Combined") }
func BenchmarkDegradation(b *testing.B)            { suite.Run(b, "Degradation") }
func BenchmarkDataCentreRead(b *testing.B)         { suite.Run(b, "DataCentreRead") }
func BenchmarkDataCentreWrite(b *testing.B)        { suite.Run(b, "DataCentreWrite") }
func BenchmarkDataCentreCombined(b *testing.B)     { suite.Run(b, "DataCentreCombined") }
func BenchmarkEventAppend(b *testing.B)            { suite.Run(b, "EventAppend") }
func BenchmarkEventAppendConcurrent(b *testing.B)  { suite.Run(b, "EventAppendConcurrent") }
func BenchmarkEventAppendRandom(b *testing.B)      { suite.Run(b, "EventAppendRandom") }
func BenchmarkEventAppendConditional(b *testing.B) { suite.Run(b, "EventAppendConditional") }
func BenchmarkEventDecide(b *testing.B)            { suite.Run(b, "EventDecide") }
func BenchmarkEventRead(b *testing.B)              { suite.Run(b, "EventRead") }
func BenchmarkEventReadMemory(b *testing.B)        { suite.Run(b, "EventReadMemory") }
func BenchmarkEventStream(b *testing.B)            { suite.Run(b, "EventStream") }
func BenchmarkEventProject(b *testing.B)           { suite.Run(b, "EventProject") }
func BenchmarkRebacIngest(b *testing.B)            { suite.Run(b, "RebacIngest") }
func BenchmarkRebac(b *testing.B)                  { suite.Run(b, "Rebac") }
func BenchmarkSocialLoad(b *testing.B)             { suite.Run(b, "SocialLoad") }
func BenchmarkSocial(b *testing.B)                 { suite.Run(b, "Social") }
func BenchmarkService(b *testing.B)                { suite.Run(b, "Service") }
func BenchmarkServiceEvents(b *testing.B)          { suite.Run(b, "ServiceEvents") }
func BenchmarkNode(b *testing.B)                   { suite.Run(b, "Node") }
func BenchmarkPayload(b *testing.B)                { suite.Run(b, "Payload") }
func BenchmarkCapped(b *testing.B)                 { suite.Run(b, "Capped") }
func BenchmarkPageSize(b *testing.B)               { suite.Run(b, "PageSize") }
func BenchmarkFrontier(b *testing.B)               { suite.Run(b, "Frontier") }
func BenchmarkV1(b *testing.B)                     { suite.Run(b, "V1") }
func BenchmarkFirstSync(b *testing.B)              { suite.Run(b, "FirstSync") }
func BenchmarkImport(b *testing.B)                 { suite.Run(b, "Import") }
func BenchmarkBackup(b *testing.B)                 { suite.Run(b, "Backup") }
func BenchmarkRestart(b *testing.B)                { suite.Run(b, "Restart") }
func BenchmarkDailyGrowth(b *testing.B)            { suite.Run(b, "DailyGrowth") }
func BenchmarkFirstLook(b *testing.B)              { suite.Run(b, "FirstLook") }
func BenchmarkUpdate(b *testing.B)                 { suite.Run(b, "Update") }
func BenchmarkGet(b *testing.B)                    { suite.Run(b, "Get") }
func BenchmarkQuery(b *testing.B)                  { suite.Run(b, "Query") }
