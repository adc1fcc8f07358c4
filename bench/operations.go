package bench

import "context"

// Operations are a workload one operation at a time, as a benchmark of go test
// repeats it. Only Do is timed.
type Operations struct {
	Clients int // that call Do at once, numbered from 0; 0 is 1

	// Prepare, if not nil, makes the next operation ready, without the store. It is
	// for one client only, because the clock of a benchmark stops meanwhile.
	Prepare func() error

	// Do is an operation. It looks at as much of an answer as costs next to nothing:
	// the whole answers were compared before the first operation.
	Do func(ctx context.Context, client int) error

	// Check is nil for reads. Of writes it checks after n operations that the store has what they wrote.
	Check func(ctx context.Context, n int64) error

	// Rows, if not nil, returns how many rows the operations have written.
	Rows func() uint64
}
