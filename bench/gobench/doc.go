// Package gobench is the one place that runs the workloads of package bench, and of
// those below it, as benchmarks of go test: it has their flags, their names and the
// suites that hold an engine against an oracle. A package bench/<engine> runs it on
// one engine. No program imports it, because it brings package testing along.
package gobench
