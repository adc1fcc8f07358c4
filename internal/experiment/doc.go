// Package experiment is the catalogue of what the project measures: for each
// experiment its question, the figure that an earlier measurement found, and a
// plan: the configurations that a lab measures on one engine, a record for each.
//
// The workloads themselves are in package bench and below it; here is which of them,
// with which sizes.
package experiment
