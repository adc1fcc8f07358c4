package mix

import (
	"math/rand/v2"

	"github.com/varvedb/varve/store/entity"
)

// Fixed is a mix of a fixed list of operations, each equally likely, whose
// answers were computed beforehand. It is for a store that does not change.
type Fixed struct {
	Of    string // its name
	Ops   []Op
	Right func(op Op, a Answer) error // fails with ErrMismatch
}

// Name implements Reads.
func (f Fixed) Name() string { return f.Of }

// Stream implements Reads.
func (f Fixed) Stream(StreamOptions) Stream {
	return func(r *rand.Rand) Op { return f.Ops[r.IntN(len(f.Ops))] }
}

// Check implements Reads.
func (f Fixed) Check(op Op, a Answer) error { return f.Right(op, a) }

// Advance implements Reads.
func (f Fixed) Advance(*entity.Block) error { return nil }

// Head implements Reads.
func (f Fixed) Head() uint64 { return 0 }
