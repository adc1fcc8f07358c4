package libsql_test

import (
	"testing"

	"github.com/varvedb/varve/bench/gobench"
)

func BenchmarkEventAppend(b *testing.B)            { gobench.RunEvents(b, suite, "Append") }
func BenchmarkEventAppendConcurrent(b *testing.B)  { gobench.RunEvents(b, suite, "AppendConcurrent") }
func BenchmarkEventAppendConditional(b *testing.B) { gobench.RunEvents(b, suite, "AppendConditional") }
func BenchmarkEventDecide(b *testing.B)            { gobench.RunEvents(b, suite, "Decide") }
func BenchmarkEventRead(b *testing.B)              { gobench.RunEvents(b, suite, "Read") }
func BenchmarkEventReadMemory(b *testing.B)        { gobench.RunEvents(b, suite, "ReadMemory") }
func BenchmarkEventStream(b *testing.B)            { gobench.RunEvents(b, suite, "Stream") }
func BenchmarkEventProject(b *testing.B)           { gobench.RunEvents(b, suite, "Project") }
