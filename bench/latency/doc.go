// Package latency collects how long operations took: as a distribution
// (Recorder) and second by second (Timeline), in the form that package result
// stores. It is pure.
//
// Distributions are HDR histograms, see http://hdrhistogram.org: memory does
// not grow with the number of operations, and quantiles keep their precision
// far into the tail, where averages of quantiles would be meaningless.
package latency
