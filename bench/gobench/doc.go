// Package gobench makes benchmarks of go test of the catalogue of internal/lab, whose entries
// varve run measures too, and holds an engine against their oracles. A package bench/<engine> runs it on one engine. No program imports it, because it brings package
// testing along.
package gobench
