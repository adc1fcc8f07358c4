package sqlite_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench"
)

var events = bench.EventSuite{Suite: suite, Flags: bench.RegisterEventFlags(flag.CommandLine)}

func BenchmarkEventAppend(b *testing.B)            { bench.RunEventAppend(b, events) }
func BenchmarkEventAppendConcurrent(b *testing.B)  { bench.RunEventAppendConcurrent(b, events) }
func BenchmarkEventAppendConditional(b *testing.B) { bench.RunEventAppendConditional(b, events) }
func BenchmarkEventDecide(b *testing.B)            { bench.RunEventDecide(b, events) }
func BenchmarkEventRead(b *testing.B)              { bench.RunEventRead(b, events) }
func BenchmarkEventReadMemory(b *testing.B)        { bench.RunEventReadMemory(b, events) }
func BenchmarkEventStream(b *testing.B)            { bench.RunEventStream(b, events) }
func BenchmarkEventProject(b *testing.B)           { bench.RunEventProject(b, events) }
