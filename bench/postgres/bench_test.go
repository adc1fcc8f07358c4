package postgres_test

import (
	"testing"

	"github.com/varvedb/varve/bench/gobench"
	_ "github.com/varvedb/varve/internal/lab/network"
	_ "github.com/varvedb/varve/store/postgres"
)

var suite = gobench.NewSuite("postgres")

func TestAnswers(t *testing.T) { suite.Check(t, "", "RebacIngest", "Social", "ReadMix") }

func BenchmarkCommit(b *testing.B)                 { suite.Run(b, "Commit") }
func BenchmarkUpdate(b *testing.B)                 { suite.Run(b, "Update") }
func BenchmarkGet(b *testing.B)                    { suite.Run(b, "Get") }
func BenchmarkQuery(b *testing.B)                  { suite.Run(b, "Query") }
func BenchmarkReadMix(b *testing.B)                { suite.Run(b, "ReadMix") }
func BenchmarkEventAppend(b *testing.B)            { suite.Run(b, "EventAppend") }
func BenchmarkEventAppendConcurrent(b *testing.B)  { suite.Run(b, "EventAppendConcurrent") }
func BenchmarkEventAppendRandom(b *testing.B)      { suite.Run(b, "EventAppendRandom") }
func BenchmarkEventAppendConditional(b *testing.B) { suite.Run(b, "EventAppendConditional") }
func BenchmarkEventDecide(b *testing.B)            { suite.Run(b, "EventDecide") }
func BenchmarkEventRead(b *testing.B)              { suite.Run(b, "EventRead") }
func BenchmarkEventStream(b *testing.B)            { suite.Run(b, "EventStream") }
func BenchmarkEventProject(b *testing.B)           { suite.Run(b, "EventProject") }

// TestBusy: nothing but the operation is between two operations.
func TestBusy(t *testing.T) { suite.Busy(t) }
