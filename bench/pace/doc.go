// Package pace decides when operations start and says how long they took. It knows neither stores nor engines.
//
// A closed loop starts an operation when the one before it has ended, on each of a number of workers. It measures
// capacity. It is blind to stalls: while one operation hangs, those that users would have started are never asked.
//
// An open loop starts operations at times fixed beforehand (Arrivals), as users do who do not know of each
// other. Latency counts from the scheduled start, so the wait of everything that came due in a stall is
// measured. Leaving it out is the coordinated omission that Gil Tene named in "How NOT to Measure Latency", and
// that wrk2 (https://github.com/giltene/wrk2) corrects in the same way.
//
// An operation is any function; see Op for how it names its kind and keeps the check of its answer out of the
// measurement. With the same seed, the n-th operation gets the same random numbers, whichever connection does it.
package pace
