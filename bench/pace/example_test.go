package pace_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/varvedb/varve/bench/pace"
)

// Reads arrive at random on four connections. The answer is checked outside the measurement.
func ExampleLoop() {
	const keys = 1000
	read := func(key uint64) string { return strconv.FormatUint(key, 10) } // of a store

	out, err := pace.Loop(context.Background(), pace.Config{
		Rate: 10_000, Workers: 4, N: 500, Seed: 1,
	}, func(_ context.Context, s *pace.Step) error {
		s.Kind = "get"
		key := s.Rand.Uint64N(keys)
		got := read(key)
		s.Stop()
		if want := strconv.FormatUint(key, 10); got != want {
			return fmt.Errorf("key %d: got %s", key, got)
		}
		return nil
	})
	fmt.Println(out.Kinds[0].Name, out.Count, out.Errors, err)
	// Output: get 500 0 <nil>
}
