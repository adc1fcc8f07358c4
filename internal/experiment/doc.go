// Package experiment is the catalogue of what the project measures: for each
// experiment its question, the figure that an earlier measurement found, and a
// function that runs it on one engine and emits a record for each configuration.
//
// A file of this package is a section of the catalogue. The workloads themselves
// are in package bench and below it; here is which of them, with which sizes.
package experiment
