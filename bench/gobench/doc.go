// Package gobench makes benchmarks of go test of the catalogue of internal/lab, whose entries
// varve run measures too, and has the suites that hold an engine against an oracle. A package
// bench/<engine> runs it on one engine. No program imports it, because it brings package
// testing along.
package gobench
