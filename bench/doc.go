// Package bench measures stores of entities. It has
//
//   - generated blocks (Profile, Blocks, Updates) and what a store must hold
//     after them (Expectation, Answers);
//   - workloads over a store: Commit, Get, Query, ApplyTar. Each is a
//     configuration and a function, verifies what the store did, and returns a
//     Result;
//   - data sets that are built once and copied for each run (Cache, OpenCopy), of
//     generated blocks or of a longer history (Source), of which the rest is there
//     to be written;
//   - what results are told with: Recorder, Result.Metrics, Manifest.
//
// It imports no engine: a program links those that it measures. Package gobench makes
// benchmarks of go test of it.
package bench
