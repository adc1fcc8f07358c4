// Package bench has the parts of a workload over a store; the Example is a
// workload. It has
//
//   - generated blocks (Profile, Blocks, Updates) and what a store must hold
//     after them (Expectation, NamedQuery);
//   - data sets that are built once and copied for each run (Cache, OpenCopy), of
//     generated blocks, of a longer history (Source), of which the rest is there
//     to be written, or of events;
//   - what to tell (Result, Manifest);
//   - commits and reads that others measure beside or between: Commit, ReadMix,
//     Combined, Reorg. Each is a configuration and a function,
//     and verifies what the store did.
//
// Packages below have one subject each: loops (pace), read mixes (mix), rows of
// one table (row), events (enrolment), permissions (rebac, social), the entity
// service (serve).
//
// It imports no engine: a program links the engines that it measures. Package
// gobench makes benchmarks of go test of it.
package bench
