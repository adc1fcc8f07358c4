package bench

import "github.com/varvedb/varve/bench/latency"

// Recorder collects latencies. It is not safe for concurrent use: give each
// goroutine its own and merge them.
type Recorder = latency.Recorder

// Summary is the distribution of latencies, in nanoseconds.
type Summary = latency.Summary

// NewRecorder returns an empty recorder, which takes about 250 KB.
func NewRecorder() *Recorder { return latency.NewRecorder() }
