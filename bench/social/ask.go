package social

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
)

// Ask asks one question of a step after the other about objects at random, an
// operation of the loop each and on a view of its own, whose opening and closing are
// in the latency, and compares the answers. None is how many were answered with
// nothing.
func Ask(ctx context.Context, s *Store, o *Oracle, step *Step, seed uint64, loop bench.Loop) (took *latency.Recorder, none int, err error) {
	took = latency.NewRecorder()
	r, all := rand.New(rand.NewPCG(seed, 0)), newActive(o.g, 1)
	for loop.Loop() {
		q := all.question(r, step)
		start := time.Now()
		v, err := s.View(ctx, o)
		if err != nil {
			return took, none, err
		}
		got, err := v.Ask(ctx, q)
		err = errors.Join(err, v.Close())
		took.Record(time.Since(start))
		if err == nil {
			err = o.Judge(v.Span, q, got)
		}
		if err != nil {
			return took, none, err
		}
		if len(got) == 0 {
			none++
		}
	}
	return took, none, nil
}
