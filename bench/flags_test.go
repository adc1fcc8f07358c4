package bench_test

import (
	"flag"

	"github.com/varvedb/varve/bench/gobench"
)

// The tests accept the flags of the benchmarks, so that both can be run by one
// command for ./bench/....
var _ = gobench.RegisterFlags(flag.CommandLine)
