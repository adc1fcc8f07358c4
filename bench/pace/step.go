package pace

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/varvedb/varve/internal/splitmix"
)

// Op is one operation. It returns an error when the operation failed or its
// answer is wrong. It is called by several goroutines at a time, each with its
// own step, which is valid until it returns.
type Op func(ctx context.Context, s *Step) error

// Step is one turn of an Op.
type Step struct {
	Worker int   // connection or client, from 0
	N      int64 // number of the operation, from 0, over all workers and with the warm-up

	// Rand depends on the loop's seed and N alone.
	Rand *rand.Rand

	// Kind is set by the Op and names the distribution that the operation
	// counts in, such as "commit" or "get"; "" is one too.
	Kind string

	// Measured tells that the step is not of the warm-up.
	Measured bool

	source  rand.PCG
	now     func() time.Duration // since the loop began
	stopped bool
	begun   time.Duration // when its timed part began, if it was told; otherwise 0
	ended   time.Duration // when it was stopped
}

// Begin begins the timed part in a closed loop, where something is made ready before.
func (s *Step) Begin() { s.begun = s.now() }

// Stop ends the timed part. What the Op does afterwards is not measured: the
// check of an answer, or the preparation of this worker's next operation. The
// worker is busy with it, though: in an open loop an arrival that waits for it
// is late, so give the loop workers enough. Without Stop, all of the Op is
// timed. Only the first call counts.
func (s *Step) Stop() {
	if !s.stopped {
		s.stopped, s.ended = true, s.now()
	}
}

func (s *Step) reset(seed uint64, n int64) {
	s.N, s.Kind, s.stopped, s.begun = n, "", false, 0
	s.source.Seed(seed, splitmix.Scramble(uint64(n)))
}

func newStep(worker int, now func() time.Duration) *Step {
	s := &Step{Worker: worker, now: now}
	s.Rand = rand.New(&s.source)
	return s
}
