// Package coreset tells the benchmarks that go test -bench=. runs, which are few
// enough to be repeated and read, from those that are run by name.
package coreset

import (
	"flag"
	"testing"
)

// Only tells whether the core set alone is asked for: the pattern of -bench is ".".
// Any other, such as Benchmark, asks for all that it matches.
func Only() bool {
	pattern := flag.Lookup("test.bench")
	return pattern != nil && pattern.Value.String() == "."
}

// Skip skips a benchmark that is not of the core set where Only that is asked for.
func Skip(b *testing.B) {
	b.Helper()
	if Only() {
		b.Skip("not in the core set: name it, as by -bench=Benchmark")
	}
}
