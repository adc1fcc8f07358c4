// Package bench has the parts of a workload over a store; the Example is a
// workload. It has
//
//   - generated blocks (Profile, Blocks, Updates) and what a store must hold
//     after them (Expectation, NamedQuery);
//   - data sets that are built once and copied for each run (Cache, OpenCopy): of
//     generated blocks, of the first part of a longer history (Source), whose
//     rest can be written later, or of events;
//   - results, and the description of the host and the engine (Result,
//     Manifest);
//   - commits and reads, which other workloads also run: Commit, ReadMix,
//     Combined, Reorg. Each is a configuration and a function, and compares the
//     store with the right answers.
//
// Packages below have one subject each: loops (pace), read mixes (mix), rows of
// one table (row), events (enrolment), permissions (rebac, social), the entity
// service (serve).
//
// It imports no engine: a program links the engines that it measures. Package
// gobench makes benchmarks of go test of it.
package bench
