package bench

import (
	"context"

	"github.com/varvedb/varve/bench/pace"
)

// Operations is a workload as single operations: a benchmark of go test repeats
// them, and Run measures them in a loop. Only Do is timed.
type Operations struct {
	Clients int // that call Do concurrently, numbered from 0; 0 is 1

	Events int // that an operation writes or reads

	// Prepare, if not nil, prepares the client's next operation, without using
	// the store.
	Prepare func(client int) error

	// Do runs an operation. It checks only what is cheap to check: the whole
	// answers were compared before the first operation.
	Do func(ctx context.Context, client int) error

	// Check, nil for reads, checks after n operations that the store has what
	// they wrote.
	Check func(ctx context.Context, n int64) error

	// Rows, if not nil, returns how many rows the operations have written.
	Rows func() uint64

	release func() // nil where nothing is held
}

// Close releases the resources of the operations.
func (ops *Operations) Close() {
	if ops.release != nil {
		ops.release()
	}
}

// Run measures the operations in a loop and checks what they have written.
func (ops *Operations) Run(ctx context.Context, loop pace.Config) (res Result, err error) {
	loop.Workers = max(ops.Clients, 1)
	res.Outcome, err = pace.Loop(ctx, loop, func(ctx context.Context, s *pace.Step) error {
		if ops.Prepare != nil {
			if err := ops.Prepare(s.Worker); err != nil {
				return err
			}
			s.Begin()
		}
		return ops.Do(ctx, s.Worker)
	})
	if err == nil && ops.Check != nil {
		err = ops.Check(ctx, res.Total)
	}
	res.Events = uint64(res.Count) * uint64(ops.Events)
	return res, err
}
