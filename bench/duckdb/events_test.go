package duckdb_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench/gobench"
)

var events = gobench.EventSuite{Suite: suite, Flags: gobench.RegisterEventFlags(flag.CommandLine)}

func BenchmarkEventAppend(b *testing.B)            { gobench.RunEventAppend(b, events) }
func BenchmarkEventAppendConcurrent(b *testing.B)  { gobench.RunEventAppendConcurrent(b, events) }
func BenchmarkEventAppendConditional(b *testing.B) { gobench.RunEventAppendConditional(b, events) }
func BenchmarkEventDecide(b *testing.B)            { gobench.RunEventDecide(b, events) }
func BenchmarkEventRead(b *testing.B)              { gobench.RunEventRead(b, events) }
func BenchmarkEventReadMemory(b *testing.B)        { gobench.RunEventReadMemory(b, events) }
func BenchmarkEventStream(b *testing.B)            { gobench.RunEventStream(b, events) }
func BenchmarkEventProject(b *testing.B)           { gobench.RunEventProject(b, events) }
