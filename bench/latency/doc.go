// Package latency collects how long operations took, as a distribution, and has the form of
// figures. It is pure.
//
// Distributions are HDR histograms, see http://hdrhistogram.org: memory does
// not grow with the number of operations, and quantiles keep their precision
// far into the tail, where averages of quantiles would be meaningless.
package latency
