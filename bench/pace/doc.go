// Package pace decides when operations start and measures how long they take.
// It knows neither stores nor engines.
//
// A closed loop has a number of workers, each of which starts an operation when
// its last one has ended. It measures capacity. It does not show stalls: while
// one operation hangs, the operations that users would have started are not
// issued.
//
// An open loop starts operations at times fixed beforehand (Arrivals), as
// independent users do. Latency counts from the scheduled start, so it includes
// the wait of every operation that came due in a stall. Leaving that wait out
// is the coordinated omission that Gil Tene described in "How NOT to Measure
// Latency", and that wrk2 (https://github.com/giltene/wrk2) corrects in the
// same way.
//
// An operation is any function; see Op for how it names its kind and keeps the
// check of its answer out of the measurement. With the same seed, the n-th
// operation gets the same random numbers, whichever worker runs it.
package pace
