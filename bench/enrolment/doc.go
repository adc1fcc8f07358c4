// Package enrolment measures the event store with what go-crablet's benchmarks
// measure: courses, students, and enrolments of students in courses. Workloads lists
// all of it, for benchmarks of go test and for the catalogue of experiments.
package enrolment
